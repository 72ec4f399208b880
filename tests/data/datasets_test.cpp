#include "core/data/datasets.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/data/check.h"
#include "core/data/holdout.h"
#include "tests/data/memory_set.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;

// Points the user's data folder at a place of the test's own.
class UserFolder {
 public:
  explicit UserFolder(const std::string& path) {
    if (const char* old = std::getenv("XDG_DATA_HOME")) old_ = old;
    setenv("XDG_DATA_HOME", path.c_str(), 1);
  }
  ~UserFolder() { old_.empty() ? unsetenv("XDG_DATA_HOME") : setenv("XDG_DATA_HOME", old_.c_str(), 1); }

 private:
  std::string old_;
};

const std::string kPair = "sentence1\tsentence2\tgold_label\na\tb\tneutral\n";

TEST(Datasets, SplitsOfAFolder) {
  const Folder folder;
  for (const char* name : {"train.tsv", "dev_matched.tsv", "dev_mismatched.tsv", "test_matched.tsv"}) folder.write(name, kPair);
  const auto found = [&](const std::string& split) { return find_data_file({.path = folder.path(), .split = split}); };
  EXPECT_EQ(found("train"), folder / "train.tsv");
  EXPECT_EQ(found("dev"), folder / "dev_matched.tsv");
  EXPECT_EQ(found("dev_mismatched"), folder / "dev_mismatched.tsv");
  EXPECT_EQ(found("test"), folder / "test_matched.tsv");
  expect_told(caught([&] { found("test_mismatched"); }), ErrorCode::config, "no split 'test_mismatched'",
              "train, dev, test, dev_mismatched");
}

TEST(Datasets, SplitsOfImages) {
  const Folder folder;
  for (const char* name : {"train-images-idx3-ubyte.gz", "dev-images-idx3-ubyte", "t10k-images-idx3-ubyte"}) folder.write(name, "x");
  EXPECT_EQ(find_data_file({.path = folder.path(), .split = "train"}), folder / "train-images-idx3-ubyte.gz");
  EXPECT_EQ(find_data_file({.path = folder.path(), .split = "dev"}), folder / "dev-images-idx3-ubyte");
  EXPECT_EQ(find_data_file({.path = folder.path(), .split = "test"}), folder / "t10k-images-idx3-ubyte");
}

TEST(Datasets, NamesAreLookedForAtTheUsersFirst) {
  const Folder home, assets;
  const UserFolder user(home.path());
  assets.write("data/tiny/train.tsv", kPair);
  const DataSpec spec{.path = "tiny", .assets = assets.path()};
  EXPECT_EQ(find_data_file(spec), assets / "data/tiny/train.tsv");
  home.write("comera/data/tiny/train.tsv", kPair);
  EXPECT_EQ(find_data_file(spec), home / "comera/data/tiny/train.tsv");
}

TEST(Datasets, WhatIsNotThere) {
  const Folder home;
  const UserFolder user(home.path());
  const auto find = [](const std::string& path) { return caught([&] { find_data_file({.path = path, .assets = test::kAssets}); }); };
  const auto known = find("wordnet-nli");
  expect_told(known, ErrorCode::not_found, "wordnet-nli is not here yet", "comera/data");
  EXPECT_EQ(known.hint, "comera data get wordnet-nli");
  EXPECT_EQ(find("wordnet-nil").hint, "did you mean wordnet-nli?");
  expect_told(find("/no/such/folder"), ErrorCode::not_found, "/no/such/folder", "no such file");
  expect_told(find(""), ErrorCode::not_found, "no data at ''", "no such file");
  expect_told(caught([&] { find_data_file({.path = home.path()}); }), ErrorCode::config, "no split 'train'", "no data file");
}

TEST(Datasets, OpensTextsAndImages) {
  const Folder folder;
  const auto text = open_dataset({.path = folder.write("x.tsv", kPair), .assets = test::kAssets});
  EXPECT_TRUE(text->info().fields.has_tokens());
  EXPECT_EQ(text->info().vocab_size, 30522);
  const std::string vocab = folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  EXPECT_EQ(open_dataset({.path = folder / "x.tsv", .vocab = vocab})->info().vocab_size, 6);
  const auto image = open_dataset({.path = folder.write("some-images-idx3-ubyte", test::idx_images(1, 2, 3, "abcdef"))});
  EXPECT_FALSE(image->info().fields.has_tokens());
  EXPECT_EQ(image->info().width, 3);
  const auto demo = open_dataset({.path = "fashion-mnist-demo", .split = "dev", .classes = 10, .assets = test::kAssets});
  EXPECT_EQ(demo->info().rows, 1000);
  expect_told(caught([&] { open_dataset({.path = folder / "x.tsv"}); }), ErrorCode::config, "no vocabulary", "vocab.txt");
  expect_told(caught([&] { open_dataset({.path = folder.write("y.tsv", "")}); }), ErrorCode::config, "y.tsv is empty", "0 bytes");
}

TEST(Datasets, KnownSets) {
  const auto sets = known_sets(test::kAssets);
  EXPECT_EQ(sets.size(), 23u);
  std::set<std::string> names;
  for (const KnownSet& set : sets) {
    names.insert(set.name);
    EXPECT_FALSE(set.about.empty() || set.licence.empty() || set.package.empty() || set.format.empty()) << set.name;
    EXPECT_GT(set.bytes, 0) << set.name;
  }
  EXPECT_EQ(names.size(), sets.size());
  EXPECT_TRUE(names.count("wordnet-nli"));
  EXPECT_EQ(std::ranges::count_if(sets, &KnownSet::is_vocabulary), 3);
  const Folder assets;
  assets.write("data/sets.json", "[{\"name\": \"x\"}]");
  EXPECT_EQ(caught([&] { known_sets(assets.path()); }).code, ErrorCode::config);
}

TEST(Check, CountsTexts) {
  const Folder folder;
  std::string content = "sentence\tlabel\n";
  for (int i = 0; i < 100; ++i) {
    for (int word = 0; word <= i; ++word) content += "good ";
    content += i % 4 == 0 ? "\t1\n" : "\t0\n";
  }
  content += "\t1\n";  // no text
  const DataReport report = check_dataset({.path = folder.write("t.tsv", content), .assets = test::kAssets});
  EXPECT_EQ(report.info.rows, 100);
  EXPECT_EQ(report.info.left_out, 1);
  EXPECT_EQ(report.class_rows, (std::vector<int64_t>{75, 25}));
  EXPECT_EQ(report.shortest, 3);  // one word, [CLS], [SEP]
  EXPECT_EQ(report.median, 52);
  EXPECT_EQ(report.percentile_90, 92);
  EXPECT_EQ(report.percentile_99, 101);
  EXPECT_EQ(report.longest, 102);
  EXPECT_EQ(report.unknown_share, 0);
}

TEST(Check, CountsUnknownTokensAndImages) {
  const Folder folder;
  const DataReport text = check_dataset({.path = folder.write("t.tsv", "sentence\tlabel\n🙂 🙂\t0\n"), .assets = test::kAssets});
  EXPECT_DOUBLE_EQ(text.unknown_share, 0.5);
  folder.write("a-labels-idx1-ubyte", test::idx_labels({2, 0, 2}));
  const DataReport images = check_dataset({.path = folder.write("a-images-idx3-ubyte", test::idx_images(3, 1, 1, "abc"))});
  EXPECT_EQ(images.class_rows, (std::vector<int64_t>{1, 0, 2}));
}

TEST(Check, RunningTextHasNoClasses) {
  const Folder folder;
  const std::string path = folder.write("a.txt", "a running text of 31 characters");
  const DataReport bytes = check_dataset({.path = path, .length = 10});
  EXPECT_EQ(bytes.info.rows, 4);
  EXPECT_TRUE(bytes.class_rows.empty());
  EXPECT_EQ(bytes.longest, 10);
  EXPECT_EQ(check_dataset({.path = path, .vocab = test::kVocab}).longest, 6);
}

TEST(Check, ExplainsTheFirstBadLine) {
  const Folder folder;
  const std::string path = folder.write("t.tsv", "sentence\tlabel\nx\t0\ny\nz\n");
  expect_told(caught([&] { check_dataset({.path = path, .assets = test::kAssets}); }), ErrorCode::config, "t.tsv:3: not a row",
              "1 columns");
}

TEST(Datasets, EveryTenthRowIsHeldOut) {
  const auto all = std::make_shared<test::MemoryTexts>(105, 9);
  const Holdout held(all, 0.1, true), rest(all, 0.1, false);
  EXPECT_EQ(held.info().rows, 10);
  EXPECT_EQ(rest.info().rows, 95);
  EXPECT_NE(held.info().fingerprint, rest.info().fingerprint);
  std::set<int32_t> seen;
  Columns row;
  for (const Holdout* part : {&held, &rest})
    for (int64_t i = 0; i < part->info().rows; ++i) {
      part->read(i, 9, row);
      seen.insert(row.ints.at("ids")[0]);
    }
  EXPECT_EQ(seen.size(), 105u) << "each row is in one part";
  held.read(0, 9, row);
  EXPECT_EQ(row.ints.at("ids")[0], 1000 * 10) << "the tenth row";
  const auto few = std::make_shared<test::MemoryTexts>(9, 9);
  expect_told(caught([&] { Holdout(few, 0.1, true); }), ErrorCode::config, "too few rows", "has 9 rows");
}

}  // namespace
}  // namespace comera
