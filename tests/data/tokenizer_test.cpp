// The tokenizer against published cases (bert_cases.jsonl) and a list of our own. To add a case, add a line to
// kCases: a text and its tokens with a space between them.
#include "core/data/tokenizer.h"
#include "core/base/json.h"

#include <nlohmann/json.hpp>

#include "core/data/words.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::tokenizer;

std::string tokens_of(const std::string& text) {
  std::string out;
  for (int32_t id : tokenizer()->encode(text)) out += (out.empty() ? "" : " ") + tokenizer()->token(id);
  return out;
}

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Tokenizer, PublishedCases) {
  std::istringstream lines(test::read_file(test::kHere + "/bert_cases.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const auto json = parse_valid_json(line);
    EXPECT_EQ(tokenizer()->encode(json["text"].get<std::string>()), json["ids"].get<std::vector<int32_t>>()) << line;
  }
  EXPECT_EQ(cases, 47);
}

struct Case {
  std::string text, tokens;
};
// Expected tokens: the published tokenizer's (PyPI tokenizers, BertWordPieceTokenizer), except for invalid UTF-8,
// where the rule is our own (words.h).
const std::vector<Case> kCases = {
    // accents, composed and combining; letters whose lower case is special
    {"Café NAÏVE Ångström", "cafe naive ang ##strom"},
    {"cafe\u0301", "cafe"},
    {"İstanbul STRASSE straße", "istanbul st ##ras ##se st ##raße"},
    {"ΑΣΣ", "α ##σ ##σ"},
    {"ﬁne", "ﬁ ##ne"},
    // CJK: one word a character; kana and Hangul are not split
    {"東京タワーと京都", "東 京 タ ##ワ ##ー ##と 京 都"},
    {"我爱北京。", "我 [UNK] 北 京 。"},
    {"한국어", "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ ##ᄋ ##ᅥ"},
    // punctuation
    {"don't stop-believin'!", "don ' t stop - bel ##ie ##vin ' !"},
    {"$5^2 `x` ~y|z", "$ 5 ^ 2 ` x ` ~ y | z"},
    {"“quotes” — dash…", "“ quotes ” — dash …"},
    {"[ cls ] x", "[ cl ##s ] x"},
    {"[SEP]", "[ sep ]"},
    // whitespace and control characters
    {std::string("a\0b\7c\u200bd\ufeffe", 13), "abc ##de"},
    {"tab\tnew\r\nline\u00a0nbsp\u3000wide\u2028sep", "tab new line n ##bs ##p wide sep"},
    {"", ""},
    {"   \t\n ", ""},
    {"\u200b\u0301", ""},
    {"a\ufffdb", "ab"},
    // unknown and long words: 100 characters are a word, 101 are not, whatever their bytes
    {"🙂 ok", "[UNK] ok"},
    {"١٢٣ ½ ²", "[UNK] ½ ²"},
    {repeat("a", 100), "aaa" + repeat(" ##aa", 48) + " ##a"},
    {"b " + repeat("a", 101) + " c", "b [UNK] c"},
    {repeat("é", 100), "ee" + repeat(" ##ee", 49)},
    {repeat("é", 101), "[UNK]"},
    {repeat("я", 60), "я" + repeat(" ##я", 59)},
    // invalid UTF-8: each bad byte is dropped, the text around it stays
    {"ab\xff\xfe"
     "cd",
     "abc ##d"},
    {"caf\xe9 au lait", "caf au lai ##t"},
    {"cut \xe2\x82", "cut"},
    {"\xc0\xaf over \xed\xa0\x80 long", "over long"},
    {"\xf5\x80\x80\x80", ""},
};

TEST(Tokenizer, OwnCases) {
  for (const Case& c : kCases) EXPECT_EQ(tokens_of(c.text), c.tokens) << c.text;
}

TEST(Tokenizer, EveryByteStringIsTaken) {
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 40; ++i) bytes.push_back(static_cast<char>((state = state * 1664525u + 1013904223u) >> 24));
    for (int32_t id : tokenizer()->encode(bytes)) ASSERT_TRUE(id >= 0 && id < tokenizer()->size());
  }
}

TEST(Tokenizer, NormalizedWordsHaveOneSpaceBetweenThem) {
  std::string out;
  normalize_words("  Naïve,\tno?  ", {}, out);
  EXPECT_EQ(out, "naive , no ?");
}

TEST(Tokenizer, SpecialTokens) {
  EXPECT_EQ(tokenizer()->size(), 30522);
  EXPECT_EQ(tokenizer()->pad(), 0);
  EXPECT_EQ(tokenizer()->unknown(), 100);
  EXPECT_EQ(tokenizer()->cls(), 101);
  EXPECT_EQ(tokenizer()->sep(), 102);
  EXPECT_EQ(tokenizer()->mask(), 103);
  EXPECT_EQ(tokenizer()->specials(), (std::vector<int32_t>{0, 100, 101, 102, 103}));
}

TEST(Tokenizer, WindowsLineEndsAndNoLastNewline) {
  const test::Folder folder;
  const auto t = open_tokenizer(folder.write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nhel\r\n##lo"));
  EXPECT_EQ(t->encode("hello hel lo"), (std::vector<int32_t>{4, 5, 4, 1}));
}

TEST(Tokenizer, AWordThatBeginsWithAKnownPieceIsUnknownAsWhole) {
  const test::Folder folder;
  const auto t = open_tokenizer(folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhel\n##lo\n"));
  EXPECT_EQ(t->encode("hellox hello"), (std::vector<int32_t>{1, 4, 5}));
}

TEST(Tokenizer, BadVocabularies) {
  const test::Folder folder;
  const auto open = [](const std::string& path) { return caught([&] { open_tokenizer(path); }); };
  expect_told(open(folder.write("empty.txt", "")), ErrorCode::config, "empty.txt is empty", "0 bytes");
  expect_told(open(folder.write("binary.txt", std::string("GGUF\0\1\2", 7))), ErrorCode::config, "binary.txt", "binary");
  for (const char* missing : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    std::string text;
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"})
      if (std::string(token) != missing) text += std::string(token) + "\n";
    expect_told(open(folder.write("v.txt", text)), ErrorCode::config, "v.txt", std::string("no line ") + missing);
  }
  expect_told(open(folder / "none.txt"), ErrorCode::not_found, "none.txt", "No such file");
  expect_told(open(folder / "nowhere"), ErrorCode::not_found, "nowhere", "No such file");
}

}  // namespace
}  // namespace comera
