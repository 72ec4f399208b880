// Ids of long texts: by several threads, kept in the cache folder.
#include "core/data/token_pack.h"

#include <atomic>

#include "core/data/sha256.h"
#include "core/data/text_stream.h"
#include "tests/data/tokenizers.h"

namespace comera {
namespace {

using test::Folder;
using Ids = std::vector<int32_t>;

// Counts the texts that are encoded, and can fail.
class Counting final : public Tokenizer {
 public:
  explicit Counting(std::shared_ptr<const Tokenizer> of) : Tokenizer(table_of(*of), true), of_(std::move(of)) {}
  using Tokenizer::encode;
  void encode(std::string_view text, Ids& ids) const override {
    if (fails) throw Error(ErrorCode::memory, "no memory", "as asked for");
    ++texts;
    of_->encode(text, ids);
  }
  std::string decode(const Ids& ids) const override { return of_->decode(ids); }
  mutable std::atomic<int> texts = 0;
  bool fails = false;

 private:
  static TokenTable table_of(const Tokenizer& of) {
    TokenTable table;
    for (int64_t id = 0; id < of.size(); ++id) table.tokens.push_back(of.token(id));
    table.fingerprint = of.fingerprint();
    return table;
  }
  const std::shared_ptr<const Tokenizer> of_;
};

class TokenPacks : public testing::Test {
 protected:
  TokenPacks() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  ~TokenPacks() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

  TokenPack open(const Counting& tokenizer, int threads = 2) const {
    return {*one_text("a.txt", text, sha256_hex(text)), tokenizer, {}, threads};
  }
  static Ids ids_of(const TokenPack& pack) { return {pack.ids().begin(), pack.ids().end()}; }
  std::vector<std::filesystem::path> kept() const {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(folder / "cache/comera/data"))
      for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/comera/data")) files.push_back(entry.path());
    return files;
  }

  const Folder folder;
  const Counting gpt2{test::published("gpt2")};
  const std::string text = "The tide was low, and the boats didn't move.\n  \xff And so on: 12 <|endoftext|> ";

 private:
  std::string before_;
};

TEST_F(TokenPacks, AnyNumberOfThreadsGivesTheSameIds) {
  std::string all;
  for (int i = 0; all.size() < 1'300'000; ++i) all += text + std::to_string(i * 7919 % 1013) + (i % 5 == 0 ? "\n\n" : "");
  const Ids whole = test::published("gpt2")->encode(all);
  for (const int threads : {1, 3}) {
    Ids ids;
    std::vector<double> shares;
    const int before = gpt2.texts;
    encode_pieces(
        gpt2, *one_text("a.txt", all, ""), threads, [&](const Ids& piece) { ids.insert(ids.end(), piece.begin(), piece.end()); },
        [&](double share) { shares.push_back(share); });
    EXPECT_EQ(gpt2.texts - before, 3) << "pieces";
    EXPECT_EQ(ids, whole);
    ASSERT_EQ(shares.size(), 3u);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1);
  }
}

TEST_F(TokenPacks, ASecondStartMapsWhatTheFirstOneMade) {
  const TokenPack first = open(gpt2);
  EXPECT_EQ(ids_of(first), gpt2.encode(text));
  EXPECT_TRUE(first.mapped());
  const int before = gpt2.texts;
  EXPECT_EQ(ids_of(open(gpt2)), ids_of(first));
  EXPECT_EQ(gpt2.texts, before);
  EXPECT_EQ(kept().size(), 1u) << "nothing unfinished is left";
  const Counting other{test::published("roberta")};
  EXPECT_EQ(ids_of(open(other)), other.encode(text));
  EXPECT_EQ(kept().size(), 2u);
}

TEST_F(TokenPacks, ADamagedFileIsMadeAgain) {
  const Ids ids = gpt2.encode(text);
  open(gpt2);
  const std::string good = test::read_file(kept().at(0).string());
  for (size_t at = 0; at <= good.size(); at += 3) {
    std::string bad = good;
    if (at % 2)
      bad.resize(at);
    else if (at < good.size())
      bad[at] ^= 1;
    else
      bad += '\0';
    std::ofstream(kept().at(0), std::ios::binary) << bad;
    const int before = gpt2.texts;
    EXPECT_EQ(ids_of(open(gpt2)), ids) << at;
    EXPECT_EQ(gpt2.texts, before + 1) << at;
  }
}

TEST_F(TokenPacks, AnInterruptedOneIsNotThere) {
  Counting failing{test::published("gpt2")};
  failing.fails = true;
  EXPECT_THROW(open(failing), Error);
  EXPECT_TRUE(kept().empty());
  EXPECT_EQ(ids_of(open(gpt2)), gpt2.encode(text));
}

TEST_F(TokenPacks, WhereNothingCanBeWrittenTheIdsAreInMemory) {
  folder.write("cache", "a file where the folder should be");
  const char* before = std::getenv("TMPDIR");
  const std::string kept_before = before ? before : "";
  setenv("TMPDIR", (folder / "nowhere").c_str(), 1);
  const TokenPack pack = open(gpt2);
  kept_before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", kept_before.c_str(), 1);
  EXPECT_FALSE(pack.mapped());
  EXPECT_EQ(ids_of(pack), gpt2.encode(text));
}

TEST_F(TokenPacks, ALongRunningTextIsKept) {
  std::string all;
  while (all.size() < (1 << 20)) all += text;
  const std::string path = folder.write("a.txt", all);
  double share = 0;
  const std::string tokenizer = (test::tokenizers() / "gpt2").string();
  const TextStream stream(text_file(path), {.length = 50, .tokenizer = tokenizer, .progress = [&](double now) { share = now; }});
  EXPECT_EQ(share, 1);
  EXPECT_EQ(kept().size(), 1u);
  const TextStream again(text_file(path), {.length = 50, .tokenizer = tokenizer, .progress = [&](double) { FAIL() << "tokenized again"; }});
  EXPECT_EQ(again.info().rows, stream.info().rows);
  const TextStream brief(text_file(folder.write("b.txt", text)), {.length = 50, .tokenizer = tokenizer});
  EXPECT_EQ(kept().size(), 1u) << "of a short text none is kept";
}

}  // namespace
}  // namespace comera
