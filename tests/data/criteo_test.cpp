// Click logs in Criteo's format.
#include "core/data/criteo.h"

#include <cmath>
#include <cstdlib>

#include "core/data/datasets.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;

// Packed files of a test go to a folder of its own.
class Criteo : public testing::Test {
 protected:
  Criteo() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  ~Criteo() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

  Folder folder;

 private:
  std::string before_;
};

// A line whose first number and first two categories are given; the rest is missing.
std::string line(const std::string& label, const std::string& number, const std::string& first, const std::string& second = "") {
  std::string text = label.empty() ? "" : label + "\t";
  text += number + std::string(13, '\t') + first + "\t" + second + std::string(24, '\t');
  return text + "\n";
}

const std::string kLines = line("0", "3", "aa", "x") + line("1", "-3", "bb", "x") + line("0", "", "aa") + line("1", "0", "cc", "y");

Columns clicks_of(const Dataset& data, int64_t row) {
  Columns columns;
  data.read(row, 1, columns);
  return columns;
}

TEST_F(Criteo, FieldsOfARow) {
  const std::string path = folder.write("train.txt", kLines);
  const auto data = open_dataset({.path = path});
  const DatasetInfo& info = data->info();
  EXPECT_EQ(info.rows, 4);
  EXPECT_EQ(info.classes, 2);
  EXPECT_TRUE(info.labelled);
  ASSERT_EQ(info.tables.size(), 26u);
  EXPECT_EQ(info.tables[0], 4) << "three values, and the row of unknown ones";
  EXPECT_EQ(info.tables[1], 4) << "missing is a value too";
  EXPECT_EQ(info.tables[25], 2);
  const Columns first = clicks_of(*data, 0), second = clicks_of(*data, 1), third = clicks_of(*data, 2);
  EXPECT_FLOAT_EQ(first.reals.at("numbers")[0], std::log(4.0f));
  EXPECT_FLOAT_EQ(second.reals.at("numbers")[0], -std::log(4.0f));
  EXPECT_EQ(third.reals.at("numbers")[0], 0);
  EXPECT_EQ(first.ints.at("category0")[0], 1) << "the most frequent value";
  EXPECT_EQ(third.ints.at("category0")[0], 1);
  EXPECT_NE(second.ints.at("category0")[0], clicks_of(*data, 3).ints.at("category0")[0]);
  EXPECT_EQ(second.ints.at("labels")[0], 1);
}

TEST_F(Criteo, GzipAndTheSecondReadGiveTheSame) {
  const auto plain = open_dataset({.path = folder.write("a.txt", kLines)});
  const auto packed = open_dataset({.path = folder.write("b.txt.gz", test::gzip(kLines))});
  const auto again = open_dataset({.path = folder / "b.txt.gz"});  // of the packed file
  for (const Dataset* other : {packed.get(), again.get()}) {
    EXPECT_EQ(plain->info().fingerprint, other->info().fingerprint);
    for (int64_t row = 0; row < 4; ++row) {
      EXPECT_EQ(clicks_of(*plain, row).ints, clicks_of(*other, row).ints);
      EXPECT_EQ(clicks_of(*plain, row).reals, clicks_of(*other, row).reals);
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "cache/comera/data"), {}), 2) << "nothing unfinished is left";
}

TEST_F(Criteo, GzipOfSeveralMembersWithPadding) {
  const std::string half = kLines.substr(0, kLines.find('\n') + 1), rest = kLines.substr(half.size());
  const auto data = open_dataset({.path = folder.write("a.txt.gz", test::gzip(half) + test::gzip(rest) + std::string(100, '\0'))});
  EXPECT_EQ(data->info().rows, 4);
}

TEST_F(Criteo, AChangedFileIsReadAnew) {
  const std::string path = folder.write("a.txt", kLines);
  EXPECT_EQ(open_dataset({.path = path})->info().rows, 4);
  folder.write("a.txt", kLines + line("1", "5", "aa"));
  EXPECT_EQ(open_dataset({.path = path})->info().rows, 5);
}

TEST_F(Criteo, ADamagedPackedFileIsMadeAnew) {
  const std::string path = folder.write("a.txt", kLines);
  open_dataset({.path = path});
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/comera/data"))
    std::filesystem::resize_file(entry.path(), 900);
  EXPECT_EQ(open_dataset({.path = path})->info().rows, 4);
}

TEST_F(Criteo, WhereTheCacheCannotBeWritten) {
  folder.write("cache", "a file where the folder should be");
  EXPECT_EQ(open_dataset({.path = folder.write("a.txt", kLines)})->info().rows, 4);
}

TEST_F(Criteo, RareValuesShareRowZero) {
  const auto data = open_dataset({.path = folder.write("a.txt", kLines), .min_count = 2});
  EXPECT_EQ(data->info().tables[0], 2);
  EXPECT_EQ(clicks_of(*data, 0).ints.at("category0")[0], 1);
  EXPECT_EQ(clicks_of(*data, 1).ints.at("category0")[0], 0);
  EXPECT_EQ(clicks_of(*data, 3).ints.at("category0")[0], 0);
}

TEST_F(Criteo, TablesWithTooFewRowsAreShared) {
  std::vector<int64_t> tables(26, 3);
  const auto data = open_dataset({.path = folder.write("a.txt", kLines), .tables = tables});
  EXPECT_EQ(data->info().fields.find("category0")->high, 3);
  for (int64_t row = 0; row < 4; ++row) {
    const int32_t id = clicks_of(*data, row).ints.at("category0")[0];
    EXPECT_TRUE(id == 1 || id == 2) << id;
  }
  tables.assign(26, 1);
  EXPECT_EQ(clicks_of(*open_dataset({.path = folder / "a.txt", .tables = tables}), 0).ints.at("category0")[0], 0);
  expect_told(caught([&] {
                open_dataset({.path = folder / "a.txt", .tables = {3, 4}});
              }),
              ErrorCode::config, "has 2 tables", "26 categories");
}

TEST_F(Criteo, OtherSplitsHaveTheRowsOfTheTrainingFile) {
  folder.write("train.txt", kLines);
  folder.write("dev.txt", line("1", "1", "cc") + line("0", "1", "never seen") + line("0", "1", "aa"));
  folder.write("test.txt", line("", "1", "aa") + line("", "1", "bb"));
  const auto train = open_dataset({.path = folder.path()}), dev = open_dataset({.path = folder.path(), .split = "dev"});
  EXPECT_EQ(dev->info().tables, train->info().tables);
  EXPECT_EQ(clicks_of(*dev, 0).ints.at("category0"), clicks_of(*train, 3).ints.at("category0"));
  EXPECT_EQ(clicks_of(*dev, 1).ints.at("category0")[0], 0);
  EXPECT_EQ(clicks_of(*dev, 2).ints.at("category0")[0], 1);
  const auto unlabelled = open_dataset({.path = folder.path(), .split = "test"});
  EXPECT_FALSE(unlabelled->info().labelled);
  EXPECT_EQ(clicks_of(*unlabelled, 0).ints.at("labels")[0], -1);
  folder.write("test.labels.txt", "1\n0\n");
  const auto labelled = open_dataset({.path = folder.path(), .split = "test"});
  EXPECT_TRUE(labelled->info().labelled);
  EXPECT_EQ(clicks_of(*labelled, 0).ints.at("labels")[0], 1);
  const auto alone = open_dataset({.path = folder / "dev.txt", .training = folder / "train.txt"});
  EXPECT_EQ(alone->info().fingerprint, dev->info().fingerprint);
}

TEST_F(Criteo, BadFilesGetOneClearError) {
  struct Bad {
    std::string content, what, why;
  };
  const std::string packed = test::gzip(kLines);
  const Bad files[] = {
      {kLines + "0\t1\n", "bad.txt:5: not a row", "it has 2 columns"},
      {kLines + line("2", "1", "a"), "bad.txt:5: not a row", "its label is '2'"},
      {kLines + line("1", "1.5", "a"), "bad.txt:5: not a row", "integer column 1 is '1.5'"},
      {kLines + line("", "1", "a"), "bad.txt:5: not a row", "it has no label"},
      {kLines.substr(0, kLines.size() - 20), "bad.txt:4: not a row", "columns"},
      {kLines + std::string(1 << 20, 'x'), "bad.txt:5: not a row", "it has 1 columns"},
      {packed.substr(0, packed.size() - 12), "is damaged", "too early"},
  };
  for (const Bad& bad : files) {
    const std::string path = folder.write("bad.txt", bad.content);
    expect_told(caught([&] { CriteoPack pack(path); }), ErrorCode::config, bad.what, bad.why);
  }
  folder.write("t.txt", line("", "1", "aa") + line("", "1", "bb"));
  folder.write("t.labels.txt", "1\n");
  expect_told(caught([&] { CriteoPack pack(folder / "t.txt"); }), ErrorCode::config, "does not fit its data", "only 1 labels");
  folder.write("t.labels.txt", "1\n2\n");
  expect_told(caught([&] { CriteoPack pack(folder / "t.txt"); }), ErrorCode::config, "t.labels.txt:2: not a label", "0 or 1");
  EXPECT_FALSE(std::filesystem::exists(folder / "cache/comera/data") && !std::filesystem::is_empty(folder / "cache/comera/data"))
      << "nothing unfinished is left";
}

TEST_F(Criteo, NumbersBeyond32BitsAreTheNearest) {
  const auto data = open_dataset({.path = folder.write("a.txt", line("0", "99999999999999999999", "a") + line("0", "-2147483648", "a"))});
  EXPECT_FLOAT_EQ(clicks_of(*data, 0).reals.at("numbers")[0], std::log(2147483648.0f));
  EXPECT_FLOAT_EQ(clicks_of(*data, 1).reals.at("numbers")[0], -std::log(2147483648.0f));
}

}  // namespace
}  // namespace comera
