// Text sets as people have them: CSV, TSV and JSONL with columns that are named.
#include "core/data/datasets.h"
#include "core/data/glue.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;

const std::string kReviews =
    "id,review,stars,mood\r\n"
    "1,\"Good, and cheap\",5,glad\r\n"
    "2,\"She said \"\"no\"\"\nand left\",1,angry\r\n"
    "3,plain,3,calm\r\n";
const ColumnNames kMood = {"review", "", "mood"};

std::string shown(const Dataset& set, int64_t row) { return set.shown(row, 40); }

TEST(Columns, QuotedCellsOfACsv) {
  const Folder folder;
  const auto set = open_dataset({.path = folder.write("a.csv", kReviews), .columns = kMood, .assets = test::kAssets});
  ASSERT_EQ(set->info().rows, 3);
  EXPECT_EQ(set->info().label_names, (std::vector<std::string>{"angry", "calm", "glad"}));
  EXPECT_EQ(set->info().classes, 3);
  EXPECT_EQ(shown(*set, 0), "[CLS] good , and cheap [SEP]  ->  glad");
  EXPECT_EQ(shown(*set, 1), "[CLS] she said \" no \" and left [SEP]  ->  angry");
  EXPECT_EQ(shown(*set, 2), "[CLS] plain [SEP]  ->  calm");
}

TEST(Columns, OtherSeparatorsAndPairs) {
  const Folder folder;
  const std::string cells[] = {"a", "b", "c", "one", "two, three", "yes"};
  for (const auto& [name, separator] : {std::pair{"x.csv", ";"}, {"x.tsv", "\t"}}) {
    std::string text;
    for (size_t i = 0; i < 6; ++i) text += cells[i] + (i % 3 == 2 ? "\n" : separator);
    const auto set = open_dataset({.path = folder.write(name, text), .columns = {"a", "b", "c"}, .assets = test::kAssets});
    EXPECT_EQ(shown(*set, 0), "[CLS] one [SEP] two , three [SEP]  ->  yes") << name;
  }
  const auto json =
      open_dataset({.path = folder.write("x.jsonl", "{\"body\": \"one\", \"spam\": true}\n{\"body\": \"two\", \"spam\": false}\n"),
                    .columns = {"body", "", "spam"},
                    .assets = test::kAssets});
  EXPECT_EQ(shown(*json, 0), "[CLS] one [SEP]  ->  true");
}

TEST(Columns, TheUsualNamesNeedNoAsking) {
  const Folder folder;
  const auto set = open_dataset({.path = folder.write("a.csv", "text,label\n\"x, y\",pos\nz,neg\n"), .assets = test::kAssets});
  EXPECT_EQ(set->info().label_names, (std::vector<std::string>{"neg", "pos"}));
}

TEST(Columns, OtherSplitsHaveTheClassesOfTheTrainingFile) {
  const Folder folder;
  const auto with = [&](const std::string& rows, std::vector<std::string> names) {
    DataSpec spec{.path = folder.write("dev.csv", "text,label\n" + rows), .assets = test::kAssets};
    spec.label_names = std::move(names);
    spec.classes = static_cast<int64_t>(spec.label_names.size());
    return open_dataset(spec);
  };
  EXPECT_EQ(shown(*with("x,pos\n", {"neg", "neutral", "pos"}), 0), "[CLS] x [SEP]  ->  pos");
  expect_told(caught([&] {
                with("x,great\n", {"neg", "pos"});
              }),
              ErrorCode::config, "dev.csv:2: bad label", "neither in the training data");
}

TEST(Columns, NumbersStayNumbers) {
  const Folder folder;
  const auto set = open_dataset({.path = folder.write("a.csv", kReviews), .columns = {"review", "", "stars"}, .assets = test::kAssets});
  EXPECT_EQ(set->info().classes, 6);
  EXPECT_TRUE(set->info().label_names.empty());
  EXPECT_EQ(shown(*set, 0), "[CLS] good , and cheap [SEP]  ->  class 5");
}

TEST(Columns, BadFilesGetOneClearError) {
  struct Bad {
    std::string name, content, what, why;
    ColumnNames columns = {"review", "", "mood"};
  };
  const std::string head = "review,mood\n";
  const Bad files[] = {
      {"a.csv", kReviews, "a.csv:1: no column 'text'", "the header has: id, review, stars, mood", {"text", "", ""}},
      {"b.csv", kReviews, "b.csv:1: a second text column", "the header has", {"", "review", ""}},
      {"c.csv", "id,click\n1,2\n", "c.csv:1: no columns to read", "id, click", {}},
      {"d.csv", head + "x,a\n\"y,b\n", "d.csv:3: not a row", "a quoted cell has no end"},
      {"e.csv", head + "x,a\n\"y\"z,b\n", "e.csv:3: not a row", "text follows the quote"},
      {"f.csv", head + "x,a\nx\n", "f.csv:3: not a row", "1 columns, the header has 2"},
      {"g.csv", head + "x,a\ny,\n", "g.csv:3: bad label", "the label is empty"},
      {"h.csv", "\"review,mood\n", "h.csv:1: not a header line", "no end"},
      {"i.csv", head, "i.csv has no rows", "header"},
      {"j.jsonl", "{\"body\": 1}\n", "j.jsonl:1: no column 'review'", "the keys are: body"},
  };
  for (const Bad& bad : files) {
    SCOPED_TRACE(bad.name);
    const Folder folder;
    const std::string path = folder.write(bad.name, bad.content);
    expect_told(caught([&] { open_dataset({.path = path, .columns = bad.columns, .assets = test::kAssets}); }), ErrorCode::config, bad.what,
                bad.why);
  }
  std::string many = head;
  for (int i = 0; i < 1002; ++i) many += "x,name" + std::to_string(i) + "\n";
  const Folder folder;
  const std::string path = folder.write("k.csv", many);
  expect_told(caught([&] { open_dataset({.path = path, .columns = kMood, .assets = test::kAssets}); }), ErrorCode::config,
              "k.csv:1002: bad label", "more than 1000 different labels");
}

}  // namespace
}  // namespace comera
