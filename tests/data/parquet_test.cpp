// Parquet files as sets of texts. What needs Arrow skips itself where this build has none; tests/data/parquet/make.py wrote the files.
#include "core/data/parquet.h"

#include <cstdlib>
#include <random>

#include "core/data/check.h"
#include "core/data/datasets.h"
#include "core/data/text_file.h"
#include "tests/data/damaged.h"
#include "tests/data/support.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using test::caught;
using test::expect_told;
using test::Folder;

const std::string kParquet = test::kHere + "/parquet";
const ColumnNames kParquetMood = {"review", "", "mood"};

// A variable of the environment while this lives; null: not there.
class ParquetVariable {
 public:
  ParquetVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~ParquetVariable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

class ParquetFiles : public testing::Test {
 protected:
  const Folder folder_;
  const ParquetVariable cache_{"XDG_CACHE_HOME", (folder_ / "cache").c_str()};
  const ParquetVariable wanted_{"COMERA_ARROW", nullptr};
  std::string copy(const std::string& name, const std::string& to) const {
    return folder_.write(to, test::read_file(kParquet + "/" + name));
  }
};

class ParquetRead : public ParquetFiles {
 protected:
  void SetUp() override {
    if (const ParquetStatus status = parquet_status(); !status.here) GTEST_SKIP() << "Arrow is " << status.reason;
  }
  std::unique_ptr<Dataset> opened(const std::string& path, const ColumnNames& columns = {}, const std::string& split = "train") const {
    return open_dataset({.path = path, .split = split, .columns = columns, .assets = test::kAssets});
  }
};

TEST_F(ParquetFiles, WithoutArrowTheErrorSaysWhatToDo) {
  const ParquetVariable off("COMERA_ARROW", "off");
  EXPECT_FALSE(parquet_status().here);
  const auto error = caught([&] { open_dataset({.path = kParquet + "/pairs.parquet", .assets = test::kAssets}); });
  expect_told(error, ErrorCode::config, "this program cannot read " + kParquet + "/pairs.parquet", "COMERA_ARROW=off");
  EXPECT_EQ(error.hint, "unset COMERA_ARROW");
  EXPECT_TRUE(fs::is_empty(folder_ / "cache/comera/data"));
}

TEST_F(ParquetFiles, AStatusHasTheLibraryOrTheReason) {
  const ParquetStatus status = parquet_status();
  EXPECT_EQ(status.library.starts_with("Arrow "), status.here) << status.library;
  EXPECT_EQ(status.reason.empty(), status.here) << status.reason;
}

TEST_F(ParquetFiles, OtherFilesAreToldApart) {
  const std::string good = test::read_file(kParquet + "/pairs.parquet");
  const auto error = [&](const std::string& content) {
    return caught([&] { open_dataset({.path = folder_.write("x.parquet", content), .assets = test::kAssets}); });
  };
  expect_told(error("text,label\none,1\n"), ErrorCode::config, "x.parquet is not a Parquet file", "does not begin with PAR1");
  expect_told(error(good.substr(0, good.size() / 2)), ErrorCode::config, "x.parquet is cut off", "does not end with PAR1");
  expect_told(error("PAR1PAR1"), ErrorCode::config, "x.parquet is cut off", "whole");
  expect_told(error("PARE" + good), ErrorCode::config, "x.parquet is encrypted", "PARE");
  expect_told(error(""), ErrorCode::config, "x.parquet is empty", "0 bytes");
}

TEST_F(ParquetFiles, SplitsAreFoundAsHuggingFaceNamesThem) {
  const auto found = [&](const std::string& split) { return find_data_file({.path = folder_.path(), .split = split}); };
  folder_.write("data/train-00001-of-00002.parquet", "x");
  folder_.write("data/train-00000-of-00002.parquet", "x");
  folder_.write("data/train_other-00000-of-00001.parquet", "x");
  folder_.write("data/validation_matched-00000-of-00001.parquet", "x");
  folder_.write("data/validation_mismatched-00000-of-00001.parquet", "x");
  folder_.write("data/test.parquet", "x");
  EXPECT_EQ(found("train"), folder_ / "data/train-00000-of-00002.parquet");
  EXPECT_EQ(found("dev"), folder_ / "data/validation_matched-00000-of-00001.parquet");
  EXPECT_EQ(found("dev_mismatched"), folder_ / "data/validation_mismatched-00000-of-00001.parquet");
  EXPECT_EQ(found("test"), folder_ / "data/test.parquet");
  folder_.write("validation.parquet", "x");  // in the folder itself goes first
  EXPECT_EQ(found("dev"), folder_ / "validation.parquet");
  folder_.write("dev.tsv", "x");
  EXPECT_EQ(found("dev"), folder_ / "dev.tsv");
}

TEST_F(ParquetFiles, AnyPartStandsForAll) {
  const std::string first = folder_.write("a-b-00000-of-00002.parquet", "x"), second = folder_.write("a-b-00001-of-00002.parquet", "x");
  EXPECT_EQ(parquet_parts(first), (std::vector<std::string>{first, second}));
  EXPECT_EQ(parquet_parts(second), (std::vector<std::string>{first, second}));
  for (const char* alone : {"a.parquet", "a-of-2.parquet", "a-1-of-x.parquet", "a-2-of-2.parquet", "-of-.parquet", "a-00000-of-00002.tsv"})
    EXPECT_EQ(parquet_parts(folder_ / alone), (std::vector<std::string>{folder_ / alone}));
  fs::remove(first);
  expect_told(caught([&] { parquet_parts(second); }), ErrorCode::not_found, first + " is missing", "one of 2 parts");
}

TEST_F(ParquetRead, PartsOfASplitAreReadInOrder) {
  const std::string set = kParquet + "/reviews";
  const auto train = opened(set, kParquetMood);
  ASSERT_EQ(train->info().rows, 3);
  EXPECT_EQ(train->info().label_names, (std::vector<std::string>{"angry", "calm", "glad"}));
  EXPECT_EQ(train->shown(0, 40), "[CLS] good , and cheap [SEP]  ->  glad");
  EXPECT_EQ(train->shown(1, 40), "[CLS] she said \" no \" and left [SEP]  ->  angry");
  EXPECT_EQ(train->shown(2, 40), "[CLS] plain [SEP]  ->  calm");
  const auto dev = open_dataset(
      {.path = set, .split = "dev", .columns = kParquetMood, .label_names = train->info().label_names, .assets = test::kAssets});
  ASSERT_EQ(dev->info().rows, 1);
  EXPECT_EQ(dev->shown(0, 40), "[CLS] cheap [SEP]  ->  glad");
  EXPECT_EQ(check_dataset({.path = set, .columns = kParquetMood, .assets = test::kAssets}).class_rows, (std::vector<int64_t>{1, 1, 1}));
}

TEST_F(ParquetRead, ItIsTheSameSetAsItsRowsAsJsonl) {
  const auto set = opened(kParquet + "/pairs.parquet");
  const auto rows = opened(folder_.write("pairs.jsonl", std::string(TextFile(kParquet + "/pairs.parquet").bytes())));
  ASSERT_EQ(set->info().rows, 2500);
  EXPECT_EQ(set->info().classes, 3);
  EXPECT_EQ(set->info().fingerprint, rows->info().fingerprint);
  for (const int64_t row : {0, 1, 699, 700, 1023, 1024, 2499}) {
    EXPECT_EQ(set->shown(row, 40), "[CLS] row " + std::to_string(row % 7) + " [SEP] x [SEP]  ->  class " + std::to_string(row % 3));
    EXPECT_EQ(set->shown(row, 40), rows->shown(row, 40));
  }
}

TEST_F(ParquetRead, AColumnIsJoinedAsOfAJsonlFile) {
  const auto joined = [](const std::string& path) {
    return open_dataset({.path = path, .columns = {"sentence1", "", ""}, .task = TextTask::language, .assets = test::kAssets});
  };
  const auto set = joined(kParquet + "/pairs.parquet");
  const auto rows = joined(folder_.write("pairs.jsonl", std::string(TextFile(kParquet + "/pairs.parquet").bytes())));
  EXPECT_TRUE(set->shown(0, 12).starts_with("row 0.row 1.")) << set->shown(0, 12);
  EXPECT_EQ(set->info().fingerprint, rows->info().fingerprint);
}

TEST_F(ParquetRead, EachTypeIsWrittenAsText) {
  const TextFile file(kParquet + "/types.parquet");
  EXPECT_EQ(file.bytes(),
            "{\"text\": \"caf\u00e9 \U0001f600\\t\\u0000.\", \"large\": \"large\", \"view\": \"view\", \"coded\": \"coded\", "
            "\"broken\": \"a\uFFFDb\", \"truth\": \"true\", \"i8\": \"-8\", \"i64\": \"-9223372036854775808\", \"u8\": \"200\", "
            "\"u64\": \"18446744073709551615\", \"f32\": \"0.1\", \"f64\": \"1e-07\", \"whole\": \"3\", \"decimal\": \"1.50\", "
            "\"day\": \"2024-02-29\", \"nothing\": \"\"}\n"
            "{\"text\": \"\", \"large\": \"\", \"view\": \"\", \"coded\": \"\", \"broken\": \"\", \"truth\": \"\", \"i8\": \"\", "
            "\"i64\": \"\", \"u8\": \"\", \"u64\": \"\", \"f32\": \"\", \"f64\": \"\", \"whole\": \"\", \"decimal\": \"\", \"day\": \"\", "
            "\"nothing\": \"\"}\n");
  const auto set = opened(file.path(), {"text", "large", "truth"});
  EXPECT_EQ(set->info().rows, 1);
  EXPECT_EQ(set->info().left_out, 1) << "a row without a text";
}

TEST_F(ParquetRead, ColumnsAreGuessedAsOfAJsonlFile) {
  const TextFile file(kParquet + "/pairs.parquet");
  const ColumnNames found = TextLayout::guess(file.path(), file.bytes());
  EXPECT_EQ(found, (ColumnNames{"sentence1", "sentence2", "label"}));
}

TEST_F(ParquetRead, DecodedRowsAreKeptAndServeWithoutArrow) {
  const std::string path = copy("pairs.parquet", "a.parquet");
  std::vector<double> told;
  const auto progress = [&](double share) { told.push_back(share); };
  const std::string rows(TextFile(path, progress).bytes());
  EXPECT_EQ(told, (std::vector<double>{1}));
  const auto kept = fs::directory_iterator(folder_ / "cache/comera/data")->path();
  EXPECT_TRUE(kept.filename().string().starts_with("parquet-"));
  {
    const ParquetVariable off("COMERA_ARROW", "off");
    EXPECT_EQ(TextFile(path, progress).bytes(), rows);
    EXPECT_EQ(told.size(), 1u);
  }
  // One that is damaged is made again.
  std::string content = test::read_file(kept.string());
  content[content.size() / 2] ^= 1;
  std::ofstream(kept, std::ios::binary) << content;
  EXPECT_EQ(TextFile(path, progress).bytes(), rows);
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(ParquetRead, WhereNothingCanBeWrittenRowsAreInMemory) {
  const std::string no_folder = folder_.write("file", "x"), path = kParquet + "/pairs.parquet";
  const std::string rows(TextFile(path).bytes());
  const ParquetVariable cache("XDG_CACHE_HOME", no_folder.c_str()), temporary("TMPDIR", no_folder.c_str());
  EXPECT_EQ(TextFile(path).bytes(), rows);
}

TEST_F(ParquetRead, ColumnsThatAreNotThereOrNoText) {
  const std::string types = kParquet + "/types.parquet";
  expect_told(caught([&] { opened(types, {"texts", "", "truth"}); }), ErrorCode::config, "no column 'texts'", "text, large, view, coded");
  expect_told(caught([&] {
                opened(types, {"list", "", "truth"});
              }),
              ErrorCode::config, "column 'list' cannot be read as text", "its type is list<");
  expect_told(caught([&] { opened(types, {"text", "", "parts"}); }), ErrorCode::config, "column 'parts' cannot be read", "struct<");
  expect_told(caught([&] { opened(types, {"bytes", "", "truth"}); }), ErrorCode::config, "column 'bytes' cannot be read", "binary");
  expect_told(caught([&] { opened(kParquet + "/nested.parquet"); }), ErrorCode::config, "no column of texts", "nested");
  expect_told(caught([&] { opened(kParquet + "/no_rows.parquet"); }), ErrorCode::config, "has no rows", "text, label");
  copy("types.parquet", "set/train-00000-of-00002.parquet"), copy("pairs.parquet", "set/train-00001-of-00002.parquet");
  expect_told(caught([&] { opened(folder_ / "set"); }), ErrorCode::config, "does not fit the part before it", "sentence1");
}

TEST_F(ParquetRead, DamagedFilesAreReadOrRefused) {
  std::mt19937_64 random(11);
  int read = 0;
  for (const char* name : {"/pairs.parquet", "/types.parquet", "/reviews/data/train-00000-of-00002.parquet"}) {
    const std::string good = test::read_file(kParquet + name);
    for (int i = 0; i < 150; ++i) {
      std::string bytes = test::damaged(good, random);
      if (i % 2) bytes = good, bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      // Most damage would be found at the ends.
      bytes = "PAR1" + bytes.substr(std::min<size_t>(4, bytes.size())) + (bytes.ends_with("PAR1") ? "" : good.substr(good.size() - 8));
      const std::string path = folder_.write("damaged.parquet", bytes);
      try {
        const TextFile file(path);
        ++read;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::config) << error.what();
        EXPECT_EQ((error.what() + error.why() + error.hint()).find('\n'), std::string::npos) << error.what() << error.why();
      }
    }
  }
  std::cout << read << " of 450 can be read\n";
}

}  // namespace
}  // namespace comera
