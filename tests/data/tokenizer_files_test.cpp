// Tokenizers as files: against the tokenizers library (tests/golden_models/tokenizers), and files that are wrong.
#include <functional>

#include "core/base/json.h"
#include "core/data/words.h"
#include "tests/data/tokenizers.h"

namespace comera {
namespace {

using test::caught;
using test::expect_told;
using test::Folder;
using test::published;
using test::tokenizers;
using Ids = std::vector<int32_t>;

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

void check_with_specials(const Tokenizer& tokenizer, const std::string& text, const std::string* pair, const Json& test) {
  Ids ids, segments;
  const Ids second = pair ? tokenizer.encode(*pair) : Ids();
  tokenizer.surround(tokenizer.encode(text), pair ? &second : nullptr, ids, segments);
  EXPECT_EQ(ids, test.at("ids").get<Ids>());
  EXPECT_EQ(segments, test.at("type_ids").get<Ids>());
  EXPECT_EQ(ids, pair ? tokenizer.encode_with_specials(text, *pair) : tokenizer.encode_with_specials(text));
  auto tokens = test.at("tokens").get<std::vector<std::string>>();
  for (std::string& token : tokens)
    if (token.ends_with("<mask>")) token = "<mask>";  // the file gives the white space that belongs to it, too
  ASSERT_EQ(tokens.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(tokenizer.token(ids[i]), tokens[i]);
}

void check_cases(const Tokenizer& tokenizer, const std::string& name) {
  std::ifstream file(tokenizers() / name / "cases.jsonl");
  std::string line;
  int cases = 0;
  for (; std::getline(file, line); ++cases) {
    const Json test = parse_valid_json(line);
    SCOPED_TRACE(line.substr(0, 200));
    const std::string kind = test.at("kind");
    if (kind == "decode") {
      EXPECT_EQ(tokenizer.decode(test.at("ids").get<Ids>()), test.at("decoded").get<std::string>());
    } else if (kind == "pair") {
      const std::string pair = test.at("pair");
      check_with_specials(tokenizer, test.at("text"), &pair, test);
    } else {
      const std::string text = bytes_of(test.at("hex"));
      const auto plain = test.at("plain_ids").get<Ids>();
      EXPECT_EQ(tokenizer.encode(text), plain);
      EXPECT_EQ(tokenizer.decode(plain), test.at("decoded").get<std::string>());
      check_with_specials(tokenizer, text, nullptr, test);
    }
  }
  EXPECT_GE(cases, 70);
}

class Published : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Published, testing::Values("gpt2", "roberta", "llama", "llama_metaspace", "bert_uncased", "bert_cased"));

TEST_P(Published, EveryCaseOfTheLibrary) { check_cases(*published(GetParam()), GetParam()); }

// What the ids of a text in pieces rest on: wherever it may be cut, the ids of both parts are those of the whole.
TEST_P(Published, ACutChangesNoId) {
  const auto tokenizer = published(GetParam());
  const char* const kPieces[] = {" ", "\n",      "  ",     "\t",     "the",    "it's",          "Low",  "12",
                                 ".", "!?",      "<mask>", "<s>",    "[SEP]",  "<|endoftext|>", "\xff", "\xe2\x80",
                                 "é", "e\u0301", "東京",   "\u00a0", "\u3000", "\r\n",          "'",    "-"};
  uint32_t state = 3;
  int cuts = 0;
  for (int round = 0; round < 150; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += kPieces[((state = state * 1664525u + 1013904223u) >> 16) % std::size(kPieces)];
    const Ids whole = tokenizer->encode(text);
    for (size_t at = tokenizer->cut(text, 0); at < text.size(); at = tokenizer->cut(text, at + 1), ++cuts) {
      Ids ids = tokenizer->encode(text.substr(0, at));
      const Ids rest = tokenizer->encode(text.substr(at));
      ids.insert(ids.end(), rest.begin(), rest.end());
      ASSERT_EQ(ids, whole) << text << " at " << at;
    }
  }
  if (std::string(GetParam()).starts_with("llama"))
    EXPECT_EQ(cuts, 0) << "merges go over the whole text";
  else
    EXPECT_GT(cuts, 100);
}

TEST(TokenizerFiles, VocabularyAndMergesAreTheSameTokenizer) {
  for (const char* name : {"gpt2", "roberta"}) {
    const Folder folder;
    test::write_vocabulary_and_merges(folder, test::tokenizer_json(name));
    for (const std::string& path : {folder.path(), folder / "vocab.json", folder / "merges.txt"}) check_cases(*open_tokenizer(path), name);
  }
}

TEST(TokenizerFiles, EveryTokenOfAFolder) {
  const Folder folder;
  EXPECT_EQ(tokenizer_file_in(folder.path()), "");
  expect_told(caught([&] { open_tokenizer(folder.path()); }), ErrorCode::not_found, "no tokenizer is in", "no tokenizer.json");
  expect_told(caught([&] { open_tokenizer(folder / "tokenizer.json"); }), ErrorCode::not_found, "tokenizer.json", "No such file");
  test::write_vocabulary_and_merges(folder, test::tokenizer_json("gpt2"));
  EXPECT_EQ(open_tokenizer(folder.path())->size(), 420);
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nx\n");
  EXPECT_EQ(open_tokenizer(folder.path())->size(), 5);
  folder.write("tokenizer.json", test::tokenizer_json("bert_cased").dump());
  EXPECT_EQ(open_tokenizer(folder.path())->size(), published("bert_cased")->size());
}

TEST(TokenizerFiles, RolesOfTokens) {
  const auto bert = published("bert_cased"), roberta = published("roberta"), gpt2 = published("gpt2"), llama = published("llama");
  EXPECT_EQ((Ids{bert->pad(), bert->unknown(), bert->cls(), bert->sep(), bert->mask()}), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(bert->specials(), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ((Ids{roberta->pad(), roberta->unknown(), roberta->cls(), roberta->sep(), roberta->mask()}), (Ids{1, 3, 0, 2, 423}));
  EXPECT_EQ(roberta->specials(), (Ids{0, 1, 2, 3, 423}));
  EXPECT_EQ((Ids{gpt2->pad(), gpt2->unknown(), gpt2->cls(), gpt2->sep(), gpt2->mask()}), (Ids{-1, -1, -1, -1, -1}));
  EXPECT_EQ(gpt2->specials(), (Ids{419}));
  EXPECT_EQ((Ids{llama->unknown(), llama->cls(), llama->sep()}), (Ids{0, 1, 2}));
  EXPECT_EQ((Ids{static_cast<int32_t>(bert->marks(true)), static_cast<int32_t>(roberta->marks(true))}), (Ids{3, 4}));
}

// A vocab.txt is read as the tokenizer_config.json next to it says; without one as BERT's uncased.
TEST(TokenizerFiles, ACasedVocabularyIsNotMadeLowerCase) {
  const Folder folder;
  const auto cased = published("bert_cased");
  std::string lines;
  for (int64_t id = 0; id < cased->size(); ++id) lines += cased->token(id) + "\n";
  const std::string path = folder.write("vocab.txt", lines), text = "The Ångström café, 東京";
  const auto plain = open_tokenizer(path);
  EXPECT_NE(plain->encode(text), cased->encode(text));
  folder.write("tokenizer_config.json", "{\"do_lower_case\": true, \"strip_accents\": null}");
  EXPECT_EQ(open_tokenizer(path)->fingerprint(), plain->fingerprint());
  folder.write("tokenizer_config.json", "{\"do_lower_case\": false}");
  EXPECT_EQ(open_tokenizer(path)->encode(text), cased->encode(text));
  EXPECT_NE(open_tokenizer(path)->fingerprint(), plain->fingerprint());
}

// Tokens by the library with each option of BertNormalizer changed: clean_text, handle_chinese_chars, strip_accents, lowercase.
TEST(TokenizerFiles, OptionsOfTheNormalizer) {
  struct Case {
    bool clean, ideographs;
    Json strip;
    bool lowercase;
    std::string words;
  };
  const std::string text =
      "\u0130\u00c5 e\u0301\u4e1cB a\x01"
      "b\x0b"
      "c";
  const Case cases[] = {
      {true, true, nullptr, true, "i ##a e \u4e1c b a ##b ##c"},
      {false, true, nullptr, true, "i ##a e \u4e1c b a ##\x01 ##b c"},
      {true, false, nullptr, true, "i ##a e ##\u4e1c ##b a ##b ##c"},
      {true, true, false, true, "i ##\u0307 ##\u00e5 e ##\u0301 \u4e1c b a ##b ##c"},
      {true, true, nullptr, false, "\u0130 ##\u00c5 e ##\u0301 \u4e1c B a ##b ##c"},
      {true, true, true, false, "I ##A e \u4e1c B a ##b ##c"},
      {false, false, false, false, "\u0130 ##\u00c5 e ##\u0301 ##\u4e1c ##B a ##\x01 ##b c"},
  };
  for (const Case& c : cases) {
    const Folder folder;
    Json file = test::tokenizer_json("bert_cased");
    file["normalizer"]["clean_text"] = c.clean;
    file["normalizer"]["handle_chinese_chars"] = c.ideographs;
    file["normalizer"]["strip_accents"] = c.strip;
    file["normalizer"]["lowercase"] = c.lowercase;
    Json vocabulary;  // every character, and inside of words
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) vocabulary[special] = vocabulary.size();
    for (const char* piece :
         {"i", "I", "\u0130", "\u0307", "a", "A", "\u00c5", "\u00e5", "\u030a", "e", "\u00e9", "\u0301", "\u4e1c", "b", "B", "\x01", "c"})
      vocabulary[piece] = vocabulary.size(), vocabulary[std::string("##") + piece] = vocabulary.size();
    file["model"]["vocab"] = vocabulary;
    const auto tokenizer = open_tokenizer(folder.write("tokenizer.json", file.dump()));
    std::string words;
    for (const int32_t id : tokenizer->encode(text)) words += (words.empty() ? "" : " ") + tokenizer->token(id);
    EXPECT_EQ(words, c.words) << file["normalizer"];
  }
}

// As the library orders them: U+1D165 has combining class 216, U+302E has 224.
TEST(TokenizerFiles, MarksThatStayAreInUnicodesOrder) {
  WordRules rules;
  std::string out;
  rules.library = true;
  for (const char* text : {"A\u302e\U0001d165 b", "A\U0001d165\u0301\u302e b"}) {
    normalize_words(text, rules, out);
    EXPECT_EQ(out, "a\U0001d165\u302e b");
  }
  normalize_words("\u302e\U0001d165", rules, out);
  EXPECT_EQ(out, "\U0001d165\u302e");
  normalize_words("A\u302e\U0001d165", {}, out);
  EXPECT_EQ(out, "a\u302e\U0001d165") << "as stored runs have it";
}

TEST(TokenizerFiles, LongWordsAndOtherPrefixes) {
  const Folder folder;
  Json file = test::tokenizer_json("bert_cased");
  file["model"]["max_input_chars_per_word"] = 3;
  file["model"]["continuing_subword_prefix"] = "_";
  file["model"]["vocab"] = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}, {"a", 5}, {"_b", 6}, {"_bb", 7}};
  const auto tokenizer = open_tokenizer(folder.write("tokenizer.json", file.dump()));
  EXPECT_EQ(tokenizer->encode("ab abb abbb [MASK]a"), (Ids{5, 6, 5, 7, 1, 4, 5}));
  EXPECT_EQ(tokenizer->decode({5, 6, 5, 7}), "ab abb");
}

// What is said of a copy of a published tokenizer.json with a change.
test::Caught said(const std::string& name, const std::function<void(Json&)>& change) {
  const Folder folder;
  Json file = test::tokenizer_json(name);
  change(file);
  const std::string path = folder.write("tokenizer.json", file.dump());
  return caught([&] { open_tokenizer(path); });
}

struct Wrong {
  std::string what, why;
  std::function<void(Json&)> change;
};

void check_wrong(const std::string& name, const std::vector<Wrong>& files) {
  EXPECT_FALSE(said(name, [](Json&) {}).thrown);
  for (const Wrong& wrong : files) {
    SCOPED_TRACE(wrong.what);
    expect_told(said(name, wrong.change), ErrorCode::config, wrong.what, wrong.why);
  }
}

TEST(TokenizerFiles, ThatAreWrongGetOneClearError) {
  const std::string unknown = "not known here", library = "";
  check_wrong("gpt2",
              {{"a model of type \"Unigram\"", unknown, [](Json& f) { f["model"]["type"] = "Unigram"; }},
               {"has no tokens", "empty", [](Json& f) { f["model"]["vocab"] = Json::object(); }},
               {"the id of a token is -1", "whole numbers", [](Json& f) { f["model"]["vocab"]["a"] = -1; }},
               {"the id of a token is 1e+20", "whole numbers", [](Json& f) { f["model"]["vocab"]["a"] = 99999999999999999999.0; }},
               {"the id of a token is 1.5", "whole numbers", [](Json& f) { f["model"]["vocab"]["a"] = 1.5; }},
               {"the ids of tokens reach 50000000", "none has the id ", [](Json& f) { f["model"]["vocab"]["a"] = 50'000'000; }},
               {"the ids of tokens reach 421", "420 tokens, and none has the id 419", [](Json& f) { f["added_tokens"][0]["id"] = 421; }},
               {"two tokens have the id 7", "\"(\"", [](Json& f) { f["model"]["vocab"]["a"] = 7; }},
               {"has no token", "must be in the vocabulary",
                [](Json& f) {
                  f["model"]["merges"].push_back({"q", "nothing"});
                }},
               {"is not a tokenizer.json", library, [](Json& f) { f["model"]["merges"].push_back(3); }},
               {"is not a tokenizer.json", library, [](Json& f) { f.erase("model"); }},
               {"is not a tokenizer.json", library, [](Json& f) { f = Json::array({1}); }},
               {"a normalizer before bytes", unknown,
                [](Json& f) {
                  f["normalizer"] = {{"type", "NFC"}};
                }},
               {"a pre-tokenizer of type Digits", unknown,
                [](Json& f) {
                  f["pre_tokenizer"] = {{"type", "Digits"}};
                }},
               {"a post-processor of type Odd", unknown, [](Json& f) {
                  f["post_processor"] = {{"type", "Odd"}};
                }}});
  check_wrong("roberta", {{"stands around texts", "no such token", [](Json& f) { f["post_processor"]["cls"][1] = 70000; }},
                          {"stands around texts", "no such token", [](Json& f) { f["post_processor"]["sep"][0] = "<end>"; }}});
  check_wrong("llama",
              {{"token 9999 stands around texts", "tokens", [](Json& f) { f["post_processor"]["special_tokens"]["<s>"]["ids"] = {9999}; }},
               {"the segment 7", unknown, [](Json& f) { f["post_processor"]["pair"][2]["SpecialToken"]["type_id"] = 7; }},
               {"leaves out a text", unknown, [](Json& f) { f["post_processor"]["pair"].erase(1); }}});
  check_wrong("bert_cased", {{"has no token [odd one]", "unknown words", [](Json& f) { f["model"]["unk_token"] = "[odd\none]"; }},
                             {"a normalizer of type NFC", unknown, [](Json& f) { f["normalizer"]["type"] = "NFC"; }},
                             {"a pre-tokenizer of type Whitespace", unknown, [](Json& f) { f["pre_tokenizer"]["type"] = "Whitespace"; }},
                             {"words that are not split", unknown, [](Json& f) { f["pre_tokenizer"] = nullptr; }},
                             {"a single word", unknown, [](Json& f) { f["added_tokens"][0]["single_word"] = true; }},
                             {"normalized text", unknown, [](Json& f) { f["added_tokens"][0]["normalized"] = true; }},
                             {"is not a tokenizer.json", library, [](Json& f) { f["model"]["max_input_chars_per_word"] = "many"; }}});
}

TEST(TokenizerFiles, DeepNestingIsRefused) {
  const Folder folder;
  const std::string deep(100'000, '[');
  expect_told(caught([&] { open_tokenizer(folder.write("a/tokenizer.json", "{\"normalizer\": " + deep)); }), ErrorCode::config,
              "nested too deeply", "100001 brackets");
  expect_told(caught([&] { open_tokenizer(folder.write("b/tokenizer.json", "{ // \" \n" + deep)); }), ErrorCode::config,
              "nested too deeply", "brackets");
  EXPECT_EQ(parse_json("{\"a\": \"" + deep + "\" /* " + deep + " */}", "x").size(), 1u);
}

TEST(TokenizerFiles, MergesThatAreWrong) {
  const auto with = [](const std::string& line) {
    const Folder folder;
    test::write_vocabulary_and_merges(folder, test::tokenizer_json("gpt2"));
    folder.write("merges.txt", "#version: 0.2\n\u0120 t\n" + line + "\n");
    return caught([&] { open_tokenizer(folder.path()); });
  };
  EXPECT_FALSE(with("h e\r").thrown);
  for (const char* line : {"h qq", "nothing", "h e e", "\xff\xfe e", " "})
    expect_told(with(line), ErrorCode::config, "merges.txt:3", "both parts of a merge and their sum must be in the vocabulary");
}

// Older files write a merge as one text.
TEST(TokenizerFiles, OlderMergesAreTheSame) {
  const Folder folder;
  Json file = test::tokenizer_json("gpt2");
  for (Json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const auto old = open_tokenizer(folder.write("tokenizer.json", file.dump())), now = published("gpt2");
  const std::string text = "The other day, there were 12 of them: \xC3\xA9t\xC3\xA9.\n\n  And so on.";
  EXPECT_EQ(old->encode(text), now->encode(text));
  EXPECT_EQ(now->decode(now->encode(text)), text);
}

// Words longer than a few characters are merged by another loop.
TEST(TokenizerFiles, LongAndShortWordsAreMergedTheSame) {
  const auto tokenizer = published("gpt2");
  std::string word;
  for (int i = 0; i < 12; ++i) word += "the";
  for (size_t length = 1; length <= word.size(); ++length) {
    std::string text;
    for (const int32_t id : tokenizer->encode(word.substr(0, length))) text += tokenizer->token(id) + "|";
    std::string want;
    for (size_t i = 0; i + 3 <= length; i += 3) want += "t|he|";
    if (length % 3 >= 1) want += "t|";
    if (length % 3 == 2) want += "h|";
    EXPECT_EQ(text, want);
  }
}

}  // namespace
}  // namespace comera
