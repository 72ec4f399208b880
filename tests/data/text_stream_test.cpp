// Texts that stand one behind the other: text files, columns of tables, folders of files.
#include "core/data/text_stream.h"

#include "core/data/datasets.h"
#include "tests/data/tokenizers.h"

namespace comera {
namespace {

using Ids = std::vector<int32_t>;

TEST(TextStream, TokensOfATokenizerOrBytes) {
  const test::Folder folder;
  const std::string text = "the other day and the next one", path = folder.write("a.txt", text);
  const std::string vocabulary = (test::tokenizers() / "gpt2" / "tokenizer.json").string();
  const Ids ids = open_tokenizer(vocabulary)->encode(text);
  ASSERT_GT(ids.size(), 4u);
  ASSERT_LT(ids.size(), text.size());
  const TextStream tokens(text_file(path), {.length = 3, .tokenizer = vocabulary}), bytes(text_file(path), {.length = 7});
  EXPECT_EQ(tokens.info().vocab_size, 420);
  EXPECT_EQ(bytes.info().vocab_size, 256);
  EXPECT_NE(tokens.info().fingerprint, bytes.info().fingerprint);
  const auto check = [](const TextStream& stream, const Ids& all, int64_t length) {
    Columns row;
    Ids seen, labels;
    for (int64_t i = 0; i < stream.info().rows; ++i) {
      stream.read(i, length, row);
      EXPECT_EQ(stream.tokens(i, length), static_cast<int64_t>(row.ints.at("ids").size()));
      EXPECT_EQ(stream.tokens(i, 2), std::min<int64_t>(2, stream.tokens(i, length)));
      seen.insert(seen.end(), row.ints.at("ids").begin(), row.ints.at("ids").end());
      labels.insert(labels.end(), row.ints.at("labels").begin(), row.ints.at("labels").end());
    }
    EXPECT_EQ(seen, all);
    Ids next(all.begin() + 1, all.end());
    next.push_back(-1);
    EXPECT_EQ(labels, next);
  };
  check(tokens, ids, 3);
  check(bytes, {text.begin(), text.end()}, 7);
}

TEST(TextStream, WordPieceForAMaskedModelHasSegments) {
  const test::Folder folder;
  const std::string text = "The tide was low. The tide will rise!", path = folder.write("a.txt", text);
  const TextStream stream(text_file(path), {.length = 100, .tokenizer = test::kVocab, .masked = true});
  EXPECT_EQ(stream.info().mask_token, 103);
  ASSERT_TRUE(stream.info().fields.find("segments"));
  Columns row;
  stream.read(0, 100, row);
  EXPECT_EQ(row.ints.at("ids"), test::tokenizer()->encode(text));
  EXPECT_EQ(row.ints.at("segments"), Ids(row.ints.at("ids").size(), 0));
  const TextStream other(text_file(path), {.length = 100, .tokenizer = test::kVocab});
  EXPECT_EQ(other.info().fingerprint, stream.info().fingerprint);
  EXPECT_FALSE(other.info().fields.find("segments"));
}

// All ids, in the order of the rows.
Ids all_of(const Dataset& data) {
  Columns row;
  Ids all;
  for (int64_t i = 0; i < data.info().rows; ++i) {
    data.read(i, 1 << 20, row);
    all.insert(all.end(), row.ints.at("ids").begin(), row.ints.at("ids").end());
  }
  return all;
}

std::string text_of(const Dataset& bytes) {
  const Ids all = all_of(bytes);
  return {all.begin(), all.end()};
}

class JoinedTexts : public testing::Test {
 protected:
  JoinedTexts() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  ~JoinedTexts() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

  DataSpec spec(const std::string& path, const std::string& column = "") const {
    return {.path = path, .columns = {column, "", ""}, .task = TextTask::language, .length = 8, .assets = test::kAssets};
  }
  test::Caught told(const DataSpec& wanted) const {
    return test::caught([&] { open_dataset(wanted); });
  }
  const test::Folder folder;

 private:
  std::string before_;
};

TEST_F(JoinedTexts, EveryTableGivesTheSameRun) {
  const std::string want = "first text\nsecond, \"quoted\"\nlast\n";
  const std::string csv = folder.write("a.csv", "id,body\n1,first text\n2,\"second, \"\"quoted\"\"\"\n3,\n4,last\n");
  const std::string tsv = folder.write("a.tsv", "id\tbody\n1\tfirst text\n2\tsecond, \"quoted\"\n3\t\n4\tlast");
  const std::string jsonl = folder.write("a.jsonl",
                                         "{\"body\": \"first text\", \"label\": [1]}\n{\"body\": \"second, \\\"quoted\\\"\"}\n"
                                         "{\"body\": \"\"}\n{\"body\": \"last\"}\n");
  for (const std::string& path : {csv, tsv, jsonl}) {
    const auto data = open_dataset(spec(path, "body"));
    EXPECT_EQ(text_of(*data), want) << path;
    EXPECT_EQ(data->info().rows, 5) << "33 bytes, 8 a row";
    EXPECT_EQ(data->info().vocab_size, 256);
  }
  EXPECT_EQ(text_of(*open_dataset(spec(csv, "id"))), "1\n2\n3\n4\n");
  EXPECT_NE(open_dataset(spec(csv, "id"))->info().fingerprint, open_dataset(spec(csv, "body"))->info().fingerprint);
}

TEST_F(JoinedTexts, SpecialTokensStandBetweenTexts) {
  const std::string path = folder.write("a.jsonl", "{\"text\": \"the day\"}\n{\"text\": \"the one\"}\n");
  const auto ids_with = [&](const std::string& tokenizer, bool masked) {
    DataSpec wanted = spec(path);
    wanted.vocab = tokenizer;
    wanted.task = masked ? TextTask::masked : TextTask::language;
    wanted.join = true;
    const auto data = open_dataset(wanted);
    for (const int32_t id : {data->info().cls_token, data->info().sep_token})
      EXPECT_TRUE(id < 0 || std::binary_search(data->info().special_tokens.begin(), data->info().special_tokens.end(), id));
    EXPECT_EQ(data->info().fields.find("segments") != nullptr, masked);
    return all_of(*data);
  };
  const auto bert = test::tokenizer();
  Ids want;
  for (const char* text : {"the day", "the one"}) {
    const Ids own = bert->encode_with_specials(text);
    want.insert(want.end(), own.begin(), own.end());
  }
  EXPECT_EQ(ids_with(test::kVocab, true), want);
  EXPECT_EQ(ids_with(test::kVocab, false), want);
  const auto gpt2 = test::published("gpt2");  // has nothing around a text
  want.clear();
  for (const char* text : {"the day", "the one"}) {
    const Ids own = gpt2->encode(text);
    want.insert(want.end(), own.begin(), own.end());
    want.push_back(gpt2->end());
  }
  EXPECT_EQ(gpt2->token(gpt2->end()), "<|endoftext|>");
  EXPECT_EQ(ids_with((test::tokenizers() / "gpt2").string(), false), want);
}

TEST_F(JoinedTexts, RowsOfAMaskedModelStayRowsUnlessTheyAreJoined) {
  const std::string path = folder.write("a.jsonl", "{\"text\": \"the day\"}\n{\"text\": \"the other day\"}\n{\"text\": \"one\"}\n");
  DataSpec wanted = spec(path);
  wanted.task = TextTask::masked;
  wanted.vocab = test::kVocab;
  EXPECT_EQ(open_dataset(wanted)->info().rows, 3);
  wanted.join = true;
  EXPECT_EQ(open_dataset(wanted)->info().rows, 2) << "12 tokens, 8 a row";
  EXPECT_NE(open_dataset(wanted)->shown(0, 8).find("masked tokens"), std::string::npos);
}

TEST_F(JoinedTexts, BytesAreShownAsLettersWithASignForALineEnd) {
  DataSpec wanted = spec(folder.write("a.txt",
                                      "Stra\xC3\x9F"
                                      "e\n\xE2\x82\xAC 5\tna\xC3\xAFve\x01 \xFFx\r\n"));
  wanted.length = 64;
  EXPECT_EQ(open_dataset(wanted)->shown(0, 64),
            "Stra\xC3\x9F"
            "e\xE2\x86\xB5\xE2\x82\xAC 5 na\xC3\xAFve. .x.\xE2\x86\xB5  ->  the next token of 25");
  EXPECT_EQ(open_dataset(wanted)->shown(0, 5).substr(0, 5), "Stra.") << "half a letter";
}

// Pieces are encoded by several threads: each ends where a row ends.
TEST_F(JoinedTexts, ALongTableIsTheRunOfItsRows) {
  std::string csv = "text\n", want;
  for (int i = 0; csv.size() < 1'700'000; ++i) {
    const std::string text = "row " + std::to_string(i) + (i % 3 ? ", with\na line end" : "");
    csv += "\"" + text + "\"\n";
    want += text + "\n";
  }
  double share = 0;
  DataSpec wanted = spec(folder.write("a.csv", csv));
  wanted.progress = [&](double now) { share = now; };
  EXPECT_EQ(text_of(*open_dataset(wanted)), want);
  EXPECT_EQ(share, 1);
  wanted.progress = [](double) { FAIL() << "read again"; };
  EXPECT_EQ(text_of(*open_dataset(wanted)), want);
}

TEST_F(JoinedTexts, AFolderOfFilesInTheOrderOfTheirNames) {
  folder.write("src/b.py", "second");
  folder.write("src/a/z.c", "first");
  folder.write("src/.git/config", "hidden");
  folder.write("src/logo.bin", std::string("\0\1", 2));
  folder.write("src/empty.py", "");
  const auto data = open_dataset(spec(folder / "src/"));
  EXPECT_EQ(text_of(*data), "first\nsecond\n");
  EXPECT_EQ(data->info().name, "src");
  EXPECT_TRUE(is_whole(spec(folder / "src")));
  folder.write("src/b.py", "other");
  EXPECT_NE(open_dataset(spec(folder / "src"))->info().fingerprint, data->info().fingerprint);
  DataSpec classes = spec(folder / "src");
  classes.task = TextTask::classification;
  test::expect_told(told(classes), ErrorCode::config, "has no split 'train'", "no data file is in it");
}

TEST_F(JoinedTexts, FoldersOfSplits) {
  folder.write("set/train/a.py", "to train");
  folder.write("set/validation/b.py", "to validate");
  DataSpec wanted = spec(folder / "set");
  EXPECT_EQ(text_of(*open_dataset(wanted)), "to train\n");
  EXPECT_FALSE(is_whole(wanted));
  wanted.split = "dev";
  EXPECT_EQ(text_of(*open_dataset(wanted)), "to validate\n");
  wanted.split = "test";
  test::expect_told(told(wanted), ErrorCode::config, "has no split 'test'", "it has train, dev");
}

TEST_F(JoinedTexts, WhatIsWrongIsTold) {
  using test::expect_told;
  const std::string pair = folder.write("pair.tsv", "sentence1\tsentence2\na\tb\n");
  expect_told(told(spec(pair)), ErrorCode::config, "gives pairs of texts", "one column");
  EXPECT_EQ(text_of(*open_dataset(spec(pair, "sentence1"))), "a\n");
  const std::string cut = folder.write("cut.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b");
  expect_told(told(spec(cut)), ErrorCode::config, "cut.jsonl:2: not a row", "not a JSON object");
  const std::string bad = folder.write("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": [1]}\n");
  expect_told(told(spec(bad)), ErrorCode::config, "bad.jsonl:2: not a row", "neither a text");
  expect_told(told(spec(bad, "body")), ErrorCode::config, "no column 'body'", "the keys are");
  const std::string none = folder.write("none.csv", "text\n\"\"\n");
  expect_told(told(spec(none)), ErrorCode::config, "none.csv has no tokens", "it has no texts");
}

}  // namespace
}  // namespace comera
