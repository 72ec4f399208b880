#include "core/data/glue.h"

#include <algorithm>

#include "core/data/datasets.h"
#include "tests/data/tokenizers.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;
using test::tokenizer;

const std::string kMnliHead = "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n";

std::string words(const Columns& row) {
  std::string out;
  for (size_t i = 0; i < row.ints.at("ids").size(); ++i) out += (i ? " " : "") + tokenizer()->token(row.ints.at("ids")[i]);
  return out;
}

// Their number is known before and after they are read.
Columns row_of(const Dataset& set, int64_t row, int64_t length = 128) {
  const int64_t before = set.tokens(row, length);
  Columns out;
  set.read(row, length, out);
  for (const int64_t tokens : {before, set.tokens(row, length)}) EXPECT_EQ(tokens, static_cast<int64_t>(out.ints.at("ids").size()));
  return out;
}

std::vector<int32_t> labels_of(const Dataset& set) {
  std::vector<int32_t> labels;
  for (int64_t row = 0; row < set.info().rows; ++row) labels.push_back(row_of(set, row).ints.at("labels").at(0));
  return labels;
}

TEST(Glue, MnliTsv) {
  const Folder folder;
  const GlueDataset set(
      folder.write(
          "train.tsv",
          kMnliHead +
              "0\tx\tA dog.\tAn animal.\tneutral\tentailment\n1\tx\tA cat\tA dog\tneutral\tcontradiction\r\n2\tx\ta\tb\tz\tneutral"),
      tokenizer());
  EXPECT_EQ(set.info().rows, 3);
  EXPECT_EQ(set.info().classes, 3);
  EXPECT_EQ(set.info().label_names, (std::vector<std::string>{"entailment", "neutral", "contradiction"}));
  EXPECT_TRUE(set.info().fields.has_tokens());
  EXPECT_TRUE(set.info().labelled);
  EXPECT_EQ(set.info().vocab_size, 30522);
  EXPECT_EQ(set.info().name, "train.tsv");
  const Columns row = row_of(set, 0);
  EXPECT_EQ(words(row), "[CLS] a dog . [SEP] an animal . [SEP]");
  EXPECT_EQ(row.ints.at("segments"), (std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(row.ints.at("labels").at(0), 0);
  EXPECT_EQ(words(row_of(set, 1)), "[CLS] a cat [SEP] a dog [SEP]");
  EXPECT_EQ(row_of(set, 1).ints.at("labels").at(0), 2);
  EXPECT_EQ(row_of(set, 2).ints.at("labels").at(0), 1);
}

TEST(Glue, AByteOrderMarkIsNotPartOfTheHeader) {
  const Folder folder;
  for (const char* content : {"\xEF\xBB\xBFsentence\tlabel\nx\t1\n", "\xEF\xBB\xBF{\"sentence\": \"x\", \"label\": 1}\n"}) {
    const GlueDataset set(folder.write("train", content), tokenizer());
    ASSERT_EQ(set.info().rows, 1);
    EXPECT_EQ(words(row_of(set, 0)), "[CLS] x [SEP]");
  }
}

TEST(Glue, SingleSentences) {
  const Folder folder;
  const GlueDataset set(folder.write("train.tsv", "sentence\tlabel\ngood film\t1\nbad\t0\n"), tokenizer());
  EXPECT_EQ(set.info().classes, 2);
  EXPECT_TRUE(set.info().label_names.empty());
  EXPECT_EQ(words(row_of(set, 0)), "[CLS] good film [SEP]");
  EXPECT_EQ(row_of(set, 0).ints.at("segments"), (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(row_of(set, 0).ints.at("labels").at(0), 1);
  EXPECT_EQ(words(row_of(set, 0, 3)), "[CLS] good [SEP]");
}

TEST(Glue, QnliNamesAndColumns) {
  const Folder folder;
  const GlueDataset set(folder.write("dev.tsv", "index\tquestion\tsentence\tlabel\n0\twho\tme\tnot_entailment\n1\twho\tyou\tentailment\n"),
                        tokenizer());
  EXPECT_EQ(set.info().label_names, (std::vector<std::string>{"entailment", "not_entailment"}));
  EXPECT_EQ(row_of(set, 0).ints.at("labels").at(0), 1);
  EXPECT_EQ(words(row_of(set, 1)), "[CLS] who [SEP] you [SEP]");
}

TEST(Glue, NamesBecomeClasses) {
  const Folder folder;
  const auto names_of = [&](const std::string& rows) {
    const GlueDataset set(folder.write("names.jsonl", rows), tokenizer());
    EXPECT_NE(set.info().label_texts, LabelTexts::numbers);
    EXPECT_EQ(row_of(set, 0).ints.at("labels").at(0), set.info().label_names.at(0) == "bad" ? 1 : 0);
    return set.info().label_names;
  };
  const std::string good = "{\"sentence\": \"x\", \"label\": \"good\"}\n", bad = "{\"sentence\": \"x\", \"label\": \"bad\"}\n",
                    entailment = "{\"sentence\": \"x\", \"label\": \"entailment\"}\n";
  EXPECT_EQ(names_of(good + bad), (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(names_of(entailment), (std::vector<std::string>{"entailment", "neutral", "contradiction"})) << "MNLI's";
  EXPECT_EQ(names_of(entailment + good), (std::vector<std::string>{"entailment", "good"}));
}

TEST(Glue, NumbersWithASignAreNamesInAscendingOrder) {
  const Folder folder;
  const std::string path = folder.write("t.csv", "sentence,label\na,1\nb,-2\nc,+10\nd,0\ne,-1\nf,1\n");
  const GlueDataset set(path, tokenizer());
  EXPECT_EQ(set.info().label_names, (std::vector<std::string>{"-2", "-1", "0", "1", "+10"}));
  EXPECT_EQ(labels_of(set), (std::vector<int32_t>{3, 0, 4, 2, 1, 3}));
  EXPECT_EQ(set.info().label_texts, LabelTexts::learned_names);
  // Other files have the classes of these names, also where they show no sign.
  const std::string dev = folder.write("dev.csv", "sentence,label\na,1\nb,0\n");
  const GlueDataset other(dev, tokenizer(), {.label_names = set.info().label_names});
  EXPECT_EQ(labels_of(other), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(other.info().classes, 5);
  const std::string strange = folder.write("strange.csv", "sentence,label\na,3\n");
  expect_told(caught([&] { GlueDataset set2(strange, tokenizer(), {.label_names = set.info().label_names}); }), ErrorCode::config,
              "strange.csv:2: bad label", "neither in the training data");
}

TEST(Glue, FractionsAreNames) {
  const Folder folder;
  const GlueDataset set(folder.write("t.jsonl", "{\"sentence\": \"a\", \"label\": 1.0}\n{\"sentence\": \"b\", \"label\": 0.0}\n"),
                        tokenizer());
  EXPECT_EQ(set.info().label_names, (std::vector<std::string>{"0.0", "1.0"}));
  EXPECT_EQ(labels_of(set), (std::vector<int32_t>{1, 0}));
}

TEST(Classes, HaveTheNumbersOfTheModel) {
  const std::vector<std::string> twice = {"crane", "owl", "crane"};
  EXPECT_NO_THROW(refuse_reordered_classes(twice, twice)) << "as in ImageNet";
  EXPECT_NO_THROW(refuse_reordered_classes({}, twice));
  EXPECT_THROW(refuse_reordered_classes(twice, {"owl"}), Error);
}

TEST(Glue, JsonLinesGiveTheSameRowsAsTsv) {
  const Folder folder;
  const GlueDataset tsv(folder.write("a.tsv", "sentence1\tsentence2\tgold_label\nCafé \"x\"\tb\tneutral\nc\td\tentailment\n"), tokenizer());
  const GlueDataset json(
      folder.write(
          "a.jsonl",
          "{\"gold_label\": \"neutral\", \"sentence1\": \"Caf\\u00e9 \\\"x\\\"\", \"sentence2\": \"b\", \"extra\": [1, {\"a\": 2}]}\n"
          "{\"sentence1\": \"c\", \"sentence2\": \"d\", \"gold_label\": \"entailment\"}\n"),
      tokenizer());
  ASSERT_EQ(json.info().rows, tsv.info().rows);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(row_of(json, i).ints.at("ids"), row_of(tsv, i).ints.at("ids"));
    EXPECT_EQ(row_of(json, i).ints.at("labels").at(0), row_of(tsv, i).ints.at("labels").at(0));
  }
  const GlueDataset numbers(folder.write("b.jsonl", "{\"sentence\": \"x\", \"label\": 4}\n{\"sentence\": \"y\", \"label\": 0}\n"),
                            tokenizer());
  EXPECT_EQ(numbers.info().classes, 5);
  EXPECT_EQ(row_of(numbers, 0).ints.at("labels").at(0), 4);
}

TEST(Glue, TestFilesWithAndWithoutLabels) {
  const Folder folder;
  const std::string path = folder.write("test_matched.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n1\tc\td\n");
  const GlueDataset bare(path, tokenizer(), 3);
  EXPECT_FALSE(bare.info().labelled);
  EXPECT_EQ(row_of(bare, 1).ints.at("labels").at(0), -1);
  EXPECT_EQ(bare.info().classes, 3);
  folder.write("test_matched.labels.tsv", "index\tprediction\n0\tneutral\n1\tcontradiction\n");
  const GlueDataset joined(path, tokenizer());
  EXPECT_TRUE(joined.info().labelled);
  EXPECT_EQ(row_of(joined, 0).ints.at("labels").at(0), 1);
  EXPECT_EQ(row_of(joined, 1).ints.at("labels").at(0), 2);
  EXPECT_NE(joined.info().fingerprint, bare.info().fingerprint);
  folder.write("test_matched.labels.tsv", "index\tprediction\n0\tneutral\n1\tneutral\n");
  EXPECT_NE(GlueDataset(path, tokenizer()).info().fingerprint, joined.info().fingerprint);
}

TEST(Glue, LabelNamesOfTheSet) {
  const Folder folder;
  folder.write("labels.txt", "sport\npolitics\nweather\n");
  const GlueDataset numbers(folder.write("train.tsv", "sentence\tlabel\nx\t1\n"), tokenizer());
  EXPECT_EQ(numbers.info().classes, 3);
  EXPECT_EQ(numbers.info().label_names[2], "weather");
  const GlueDataset names(folder.write("dev.tsv", "sentence\tlabel\nx\tweather\n"), tokenizer());
  EXPECT_EQ(row_of(names, 0).ints.at("labels").at(0), 2);
}

TEST(Glue, RowsWithoutTextOrLabelAreLeftOut) {
  const Folder folder;
  const GlueDataset set(
      folder.write("train.tsv", "sentence1\tsentence2\tgold_label\n\tb\tneutral\na\t\tneutral\na\tb\t-\nlast\tone\tentailment\n"),
      tokenizer());
  EXPECT_EQ(set.info().rows, 1);
  EXPECT_EQ(set.info().left_out, 3);
  EXPECT_EQ(words(row_of(set, 0)), "[CLS] last [SEP] one [SEP]");
}

TEST(Glue, LeftOutRowsKeepTheirLabelsInPlace) {
  const Folder folder;
  folder.write("test.labels.tsv", "index\tprediction\n0\tneutral\n1\tentailment\n");
  const GlueDataset set(folder.write("test.tsv", "sentence1\tsentence2\n\tb\nc\td\n"), tokenizer());
  ASSERT_EQ(set.info().rows, 1);
  EXPECT_EQ(row_of(set, 0).ints.at("labels").at(0), 0);
}

TEST(Glue, FingerprintDependsOnEveryByteAndTheVocabulary) {
  const Folder folder;
  const auto print = [&](const std::string& content, std::shared_ptr<const Tokenizer> t) {
    return GlueDataset(folder.write("f.tsv", content), t).info().fingerprint;
  };
  const std::string one = print("sentence\tlabel\nx\t1\n", tokenizer());
  EXPECT_EQ(one.size(), 64u);
  EXPECT_EQ(one, print("sentence\tlabel\nx\t1\n", tokenizer()));
  EXPECT_NE(one, print("sentence\tlabel\ny\t1\n", tokenizer()));
  const auto small = open_tokenizer(folder.write("v.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nx\n"));
  EXPECT_NE(one, print("sentence\tlabel\nx\t1\n", small));
}

TEST(Glue, RowsOfAnyTokenizer) {
  const Folder folder;
  const std::string path = folder.write("a.csv", "sentence1,sentence2,label\nthe tide is low,the tide,0\n");
  for (const char* name : {"roberta", "gpt2", "bert_cased", "llama"}) {
    const auto tokens = test::published(name);
    const GlueDataset set(path, tokens);
    const Columns row = row_of(set, 0);
    EXPECT_EQ(row.ints.at("ids"), tokens->encode_with_specials("the tide is low", "the tide")) << name;
    EXPECT_EQ(set.info().vocab_size, tokens->size());
    EXPECT_EQ(set.info().mask_token, tokens->mask());
    // Cut, the special tokens stay: the last token of the longer side goes.
    std::vector<int32_t> a = tokens->encode("the tide is low"), b = tokens->encode("the tide"), ids, segments;
    cut_pair(a, b, 8 - tokens->marks(true));
    tokens->surround(a, &b, ids, segments);
    const Columns cut = row_of(set, 0, 8);
    EXPECT_EQ(cut.ints.at("ids").size(), 8u);
    EXPECT_EQ(cut.ints.at("ids"), ids);
    EXPECT_EQ(cut.ints.at("segments"), segments);
    EXPECT_EQ(std::count(segments.begin(), segments.end(), 1) > 0, std::string(name) != "roberta") << "RoBERTa has one segment";
  }
  expect_told(caught([&] { row_of(GlueDataset(path, test::published("roberta")), 0, 3); }), ErrorCode::config,
              "rows of 3 tokens are too short", "4 special tokens");
}

TEST(Glue, ATextWithoutATokenIsOneUnknownToken) {
  const Folder folder;
  Json file = test::tokenizer_json("gpt2");
  file["model"]["merges"] = Json::array();
  file["model"]["vocab"] = {{"a", 0}, {"<unk>", 1}};
  file["added_tokens"] = Json::array();
  const GlueDataset set(folder.write("a.csv", "text,label\nzzz,0\n"), open_tokenizer(folder.write("tokenizer.json", file.dump())));
  EXPECT_EQ(row_of(set, 0).ints.at("ids"), (std::vector<int32_t>{1}));
  EXPECT_EQ(row_of(set, 0).ints.at("segments"), (std::vector<int32_t>{0}));
}

// For masked language models: rows of texts, whatever else the file has.
TEST(Glue, MaskedRowsNeedNoLabels) {
  const Folder folder;
  const std::string rows =
      "{\"code\": \"def f(x):\\n  return x\", \"label\": \"-\"}\n{\"code\": \"\", \"label\": 1}\n{\"code\": \"the tide\", \"label\": "
      "2.5}\n";
  const std::string path = folder.write("a.jsonl", rows);
  const auto set = open_dataset({.path = path, .columns = {"code", "", ""}, .task = TextTask::masked, .assets = test::kAssets});
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.rows, 2);
  EXPECT_EQ(info.left_out, 1);
  EXPECT_TRUE(info.labelled);
  EXPECT_EQ(info.mask_token, 103);
  EXPECT_EQ(info.fields.find("labels")->per, Per::token);
  Batch batch;
  const BatchOptions options{.batch_size = 2, .length = 16, .mask_share = 0.9, .shuffle = false, .drop_last = false, .seed = 3};
  ASSERT_TRUE(make_batch(*set, options, 0, batch));
  int masked = 0;
  for (size_t s = 0; s < 2; ++s) {
    const Columns whole = row_of(*set, static_cast<int64_t>(s), 16);
    const std::vector<int32_t>& ids = whole.ints.at("ids");
    EXPECT_EQ(ids.front(), 101);
    EXPECT_EQ(ids.back(), 102);
    for (size_t i = 0; i < 16; ++i) {
      const int32_t label = batch.ints.at("labels")[16 * s + i], read = batch.ints.at("ids")[16 * s + i];
      const bool inside = i > 0 && i + 1 < ids.size();
      if (!inside)
        EXPECT_EQ(label, -1) << "special tokens and padding";
      else
        EXPECT_EQ(label >= 0 ? label : read, ids[i]);
      masked += label >= 0;
    }
    EXPECT_EQ(batch.ints.at("ids")[16 * s], 101);
  }
  EXPECT_GE(masked, 8);
}

// The rule of METHODS.md 1.3, one token at a time.
void cut_slowly(std::vector<int32_t>& a, std::vector<int32_t>& b, size_t budget) {
  while (a.size() + b.size() > budget) (a.size() >= b.size() ? a : b).pop_back();
}

TEST(Glue, CuttingDropsTheLastTokenOfTheLongerSide) {
  for (int na = 0; na <= 12; ++na)
    for (int nb = 0; nb <= 12; ++nb)
      for (int budget = 0; budget <= 26; ++budget) {
        std::vector<int32_t> a, b;
        for (int i = 0; i < na; ++i) a.push_back(i);
        for (int i = 0; i < nb; ++i) b.push_back(100 + i);
        auto slow_a = a, slow_b = b;
        cut_pair(a, b, budget);
        cut_slowly(slow_a, slow_b, static_cast<size_t>(budget));
        ASSERT_EQ(a, slow_a) << na << " " << nb << " " << budget;
        ASSERT_EQ(b, slow_b) << na << " " << nb << " " << budget;
      }
}

TEST(Glue, RowsFitTheAskedLength) {
  const Folder folder;
  const GlueDataset set(folder.write("train.tsv", "sentence1\tsentence2\tgold_label\none two three four five\tsix seven\tneutral\n"),
                        tokenizer());
  EXPECT_EQ(words(row_of(set, 0, 9)), "[CLS] one two three four [SEP] six seven [SEP]");
  EXPECT_EQ(words(row_of(set, 0, 7)), "[CLS] one two [SEP] six seven [SEP]");
  EXPECT_EQ(words(row_of(set, 0, 6)), "[CLS] one [SEP] six seven [SEP]");
  EXPECT_EQ(words(row_of(set, 0, 3)), "[CLS] [SEP] [SEP]");
}

TEST(Glue, FillsTheFieldsThatItDeclares) {
  const Folder folder;
  const GlueDataset set(folder.write("t.tsv", "sentence\tlabel\nx y z\t1\n"), tokenizer());
  const Columns row = row_of(set, 0);
  EXPECT_TRUE(row.reals.empty());
  EXPECT_EQ(row.ints.size(), set.info().fields.fields.size());
  for (const BatchField& field : set.info().fields.fields) {
    const std::vector<int32_t>& values = row.ints.at(field.name);
    EXPECT_EQ(values.size(), field.per == Per::token ? 5u : 1u) << field.name;
    for (const int32_t value : values) EXPECT_TRUE(value >= field.low && value < field.high) << field.name << " " << value;
  }
}

// Bad files. To add one: its name, its content, the error's code, what it must say and why.
struct Bad {
  std::string name, content, what, why;
  int64_t classes = 0;
};
const std::string kHead = "sentence\tlabel\n";
const std::vector<Bad> kBad = {
    {"empty.tsv", "", "empty.tsv is empty", "0 bytes"},
    {"header.tsv", kHead, "header.tsv has no rows", "header"},
    {"binary.tsv", kHead + std::string("a\0b\t1\n", 6), "binary.tsv:2: not a text file", "zero byte"},
    {"packed.tsv", "\x1f\x8b\x08 and so on", "packed.tsv is compressed", "gzip"},
    {"columns.tsv", "id\tclick\n1\t2\n", "columns.tsv:1: no columns", "id, click"},
    {"half_pair.tsv", "sentence1\tlabel\nx\t1\n", "half_pair.tsv:1: no columns", "sentence1, label"},
    {"few.tsv", kHead + "x\t1\ny\nz\t1\n", "few.tsv:3: not a row", "1 columns, the header has 2"},
    {"many.tsv", kHead + "x\ty\t1\n", "many.tsv:2: not a row", "3 columns"},
    {"cut.tsv", kHead + "x\t1\ny", "cut.tsv:3: not a row", "1 columns"},
    {"mixed.tsv", kHead + "x\t1\nx\tneutral\n", "mixed.tsv:3: bad label", "other lines have numbers"},
    {"sign.tsv", kHead + "x\t-1\ny\tneutral\n", "sign.tsv:3: bad label", "other lines have numbers"},
    {"huge.tsv", kHead + "x\t4000000000\n", "huge.tsv:2: bad label", "outside"},
    {"range.tsv", kHead + "x\t1\ny\t2\n", "range.tsv:3: bad label", "outside 0..1", 2},
    {"nolabel.tsv", kHead + "x\t\n", "nolabel.tsv:2: bad label", "the label is empty"},
    {"bad.jsonl", "{\"sentence\": \"x\", \"label\": 1}\n{\"sentence\": \"x\", \"lab", "bad.jsonl:2: not a row", "not a JSON object"},
    {"first.jsonl", "{\"sentence\": \n", "first.jsonl:1: not a JSON object", "parsed"},
    {"key.jsonl", "{\"sentence\": \"x\", \"label\": 1}\n{\"label\": 1}\n", "key.jsonl:2: not a row", "no key \"sentence\""},
    {"type.jsonl", "{\"sentence\": \"x\", \"label\": 1}\n{\"sentence\": [], \"label\": 1}\n", "type.jsonl:2: not a row",
     "neither a text nor"},
    {"columns.jsonl", "{\"a\": 1}\n", "columns.jsonl:1: no columns", "a"},
};

TEST(Glue, BadFiles) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.name);
    const Folder folder;
    const std::string path = folder.write(bad.name, bad.content);
    expect_told(caught([&] { GlueDataset set(path, tokenizer(), bad.classes); }), ErrorCode::config, bad.what, bad.why);
  }
}

TEST(Glue, ACutFileSaysSo) {
  const Folder folder;
  const auto error = caught([&] { GlueDataset set(folder.write("cut.tsv", kHead + "x\t1\ny"), tokenizer()); });
  EXPECT_NE(error.hint.find("get it again"), std::string::npos) << error.hint;
}

TEST(Glue, BadLabelFiles) {
  const Folder folder;
  const std::string path = folder.write("test.tsv", "index\tsentence\n0\tx\n1\ty\n");
  const auto with = [&](const std::string& labels) {
    folder.write("test.labels.tsv", labels);
    return caught([&] { GlueDataset set(path, tokenizer()); });
  };
  expect_told(with("index\tprediction\n0\t1\n"), ErrorCode::config, "test.tsv:3: no label", "1 labels");
  expect_told(with("index\tprediction\n0\t1\n1\t1\n2\t0\n"), ErrorCode::config, "does not fit", "3 labels for 2 rows");
  expect_told(with("0\t1\n1\t1\n"), ErrorCode::config, "test.labels.tsv:1: not a label line", "header");
  expect_told(with("index\tprediction\n1\t1\n0\t1\n"), ErrorCode::config, "test.labels.tsv:2: not a label line", "index is not 0");
  expect_told(with("index\tprediction\n0\t1\n1\tbad\n"), ErrorCode::config, "test.tsv:3: bad label", "other lines have numbers");
}

TEST(Glue, ClassesThatDoNotFitTheNames) {
  const Folder folder;
  folder.write("labels.txt", "a\nb\n");
  const std::string path = folder.write("train.tsv", kHead + "x\t1\n");
  expect_told(caught([&] { GlueDataset set(path, tokenizer(), 3); }), ErrorCode::config, "labels.txt does not fit", "2 classes");
}

TEST(Glue, WrongCallsAreOurBugs) {
  const Folder folder;
  const GlueDataset set(folder.write("t.tsv", kHead + "x\t1\n"), tokenizer());
  for (int64_t row : {int64_t{-1}, int64_t{1}}) EXPECT_TRUE(caught([&] { row_of(set, row); }).thrown);
  EXPECT_TRUE(caught([&] { row_of(set, 0, 1); }).thrown);
}

}  // namespace
}  // namespace comera
