// Byte-pair tokenizers against the tokenizers library (tests/golden_models/tokenizers, or $COMERA_GOLDEN_MODELS/tokenizers), and files that
// are wrong.
#include "core/data/bpe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text_stream.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

fs::path tokenizers() {
  const char* given = std::getenv("COMERA_GOLDEN_MODELS");
  return fs::path(given ? given : COMERA_SOURCE_DIR "/tests/golden_models") / "tokenizers";
}

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

class Published : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Published, testing::Values("gpt2", "roberta", "llama", "llama_metaspace"));

TEST_P(Published, EveryCaseOfTheLibrary) {
  const fs::path folder = tokenizers() / GetParam();
  const BpeTokenizer tokenizer((folder / "tokenizer.json").string());
  std::ifstream file(folder / "cases.jsonl");
  std::string line;
  int cases = 0;
  for (; std::getline(file, line); ++cases) {
    const Json test = Json::parse(line);
    SCOPED_TRACE(line.substr(0, 200));
    const auto ids = test.at("ids").get<std::vector<int32_t>>();
    const std::string kind = test.at("kind");
    if (kind == "decode") {
      EXPECT_EQ(tokenizer.decode(ids), test.at("decoded"));
    } else if (kind == "pair") {
      EXPECT_EQ(tokenizer.encode_with_specials(test.at("text").get<std::string>(), test.at("pair").get<std::string>()), ids);
    } else {
      const std::string text = bytes_of(test.at("hex"));
      const auto plain = test.at("plain_ids").get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer.encode(text), plain);
      EXPECT_EQ(tokenizer.encode_with_specials(text), ids);
      EXPECT_EQ(tokenizer.decode(plain), test.at("decoded"));
    }
  }
  EXPECT_GE(cases, 70);
}

class Changed {
 public:
  Changed() : path_(fs::path(testing::TempDir()) / ("comera-bpe-" + std::to_string(::getpid()) + ".json")) {}
  ~Changed() { fs::remove(path_); }
  // What is said of a copy of GPT-2's file with a change.
  std::string said(const std::function<void(Json&)>& change) {
    Json file = Json::parse(std::ifstream(tokenizers() / "gpt2" / "tokenizer.json"));
    change(file);
    std::ofstream(path_) << file;
    try {
      BpeTokenizer tokenizer(path_.string());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::config);
      return std::string(error.what()) + ": " + error.why();
    }
    return "";
  }

 private:
  const fs::path path_;
};

TEST(Bpe, FilesThatAreWrongGetOneClearError) {
  Changed changed;
  const auto has = [](const std::string& said, const std::string& part) { EXPECT_NE(said.find(part), std::string::npos) << said; };
  EXPECT_EQ(changed.said([](Json&) {}), "");
  has(changed.said([](Json& f) { f["model"]["type"] = "Unigram"; }), "a model of type \"Unigram\"");
  has(changed.said([](Json& f) { f["model"]["vocab"] = Json::object(); }), "has no tokens");
  has(changed.said([](Json& f) { f["model"]["vocab"]["a"] = -1; }), "the id of a token is -1");
  has(changed.said([](Json& f) { f["model"]["vocab"]["a"] = 50'000'000; }), "the ids of tokens reach 50000000");
  has(changed.said([](Json& f) { f["model"]["merges"].push_back({"q", "nothing"}); }), "has no token");
  has(changed.said([](Json& f) { f["model"]["merges"].push_back(3); }), "is not a tokenizer.json");
  has(changed.said([](Json& f) { f.erase("model"); }), "is not a tokenizer.json");
  has(changed.said([](Json& f) { f = Json::array({1}); }), "is not a tokenizer.json");
  has(changed.said([](Json& f) { f["normalizer"] = {{"type", "NFC"}}; }), "a normalizer before bytes");
  has(changed.said([](Json& f) { f["pre_tokenizer"] = {{"type", "Digits"}}; }), "a pre-tokenizer of type Digits");
  has(changed.said([](Json& f) { f["post_processor"] = {{"type", "Odd"}}; }), "a post-processor of type Odd");
  EXPECT_THROW(BpeTokenizer("/nowhere/tokenizer.json"), Error);
}

// Older files write a merge as one text.
TEST(Bpe, OlderMergesAreTheSame) {
  Json file = Json::parse(std::ifstream(tokenizers() / "gpt2" / "tokenizer.json"));
  for (Json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const fs::path path = fs::path(testing::TempDir()) / ("comera-bpe-old-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << file;
  const BpeTokenizer old(path.string()), now((tokenizers() / "gpt2" / "tokenizer.json").string());
  const std::string text = "The other day, there were 12 of them: \xC3\xA9t\xC3\xA9.\n\n  And so on.";
  EXPECT_EQ(old.encode(text), now.encode(text));
  EXPECT_EQ(now.decode(now.encode(text)), text);
  fs::remove(path);
}

TEST(TextStream, TokensOfATokenizerOrBytes) {
  const fs::path path = fs::path(testing::TempDir()) / ("comera-stream-" + std::to_string(::getpid()) + ".txt");
  const std::string text = "the other day and the next one";
  std::ofstream(path) << text;
  const std::string vocabulary = (tokenizers() / "gpt2" / "tokenizer.json").string();
  const std::vector<int32_t> ids = BpeTokenizer(vocabulary).encode(text);
  ASSERT_GT(ids.size(), 4u);
  ASSERT_LT(ids.size(), text.size());
  const TextStream tokens(path.string(), 3, vocabulary), bytes(path.string(), 7);
  EXPECT_EQ(tokens.info().vocab_size, BpeTokenizer(vocabulary).size());
  EXPECT_EQ(bytes.info().vocab_size, 256);
  EXPECT_NE(tokens.info().fingerprint, bytes.info().fingerprint);
  const auto check = [](const TextStream& stream, const std::vector<int32_t>& all, int64_t length) {
    Columns row;
    std::vector<int32_t> seen, labels;
    for (int64_t i = 0; i < stream.info().rows; ++i) {
      stream.read(i, length, row);
      seen.insert(seen.end(), row.ints.at("ids").begin(), row.ints.at("ids").end());
      labels.insert(labels.end(), row.ints.at("labels").begin(), row.ints.at("labels").end());
    }
    EXPECT_EQ(seen, all);
    std::vector<int32_t> next(all.begin() + 1, all.end());
    next.push_back(-1);
    EXPECT_EQ(labels, next);
  };
  check(tokens, ids, 3);
  check(bytes, {text.begin(), text.end()}, 7);
  fs::remove(path);
}

}  // namespace
}  // namespace comera
