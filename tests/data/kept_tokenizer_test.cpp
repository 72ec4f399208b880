// The copy of a tokenizer that a run keeps: when it is made, and when it is read. What runs do with it is in tests/session.
#include "core/data/kept_tokenizer.h"

#include "tests/data/tokenizers.h"

namespace comera {
namespace {
using test::Folder;
namespace fs = std::filesystem;

TEST(KeptTokenizer, OfTwoFilesIsTwoFiles) {
  const Folder files, run;
  test::write_vocabulary_and_merges(files, test::tokenizer_json("gpt2"));
  files.write("tokenizer_config.json", "{}");
  const std::string named = files / "vocab.json";
  ASSERT_EQ(keep_tokenizer(named, run.path()), "");
  EXPECT_TRUE(fs::exists(run / "tokenizer/tokenizer_config.json"));
  EXPECT_EQ(kept_tokenizer(named, run.path()), named);
  EXPECT_EQ(kept_tokenizer(files.path(), run.path()), files.path()) << "a folder is named as well";
  files.write("merges.txt", "#version: 0.2\n");
  EXPECT_EQ(kept_tokenizer(named, run.path()), run / "tokenizer/vocab.json");
  EXPECT_EQ(keep_tokenizer(named, run.path()), "");
  EXPECT_EQ(kept_tokenizer(named, run.path()), run / "tokenizer/vocab.json") << "a copy is not replaced";
  EXPECT_EQ(kept_tokenizer("", run.path()), "") << "texts that are read as bytes";
}

TEST(KeptTokenizer, OfWordsHasTheNameThatFoldersHaveForIt) {
  const Folder files, run;
  const std::string named = files.write("my-words.txt", "[UNK]\ntide\n");
  ASSERT_EQ(keep_tokenizer(named, run.path()), "");
  EXPECT_EQ(kept_tokenizer(named, run.path()), named);
  fs::remove(named);
  EXPECT_EQ(kept_tokenizer(named, run.path()), run / "tokenizer/vocab.txt");
  files.write("my-words.txt", "[UNK]\ntide\n");
  EXPECT_EQ(kept_tokenizer(named, run.path()), named);
  const std::string settings = files.write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(kept_tokenizer(named, run.path()), run / "tokenizer/vocab.txt") << "it reads texts otherwise now";
  fs::remove(settings);
  files.write("my-words.txt", "[UNK]\ntides\n");
  EXPECT_EQ(kept_tokenizer(named, run.path()), run / "tokenizer/vocab.txt");
}

TEST(KeptTokenizer, IsWholeOrNotThere) {
  const Folder run;
  EXPECT_NE(keep_tokenizer(run / "none.json", run.path()).find("none.json"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(run.path()));
  EXPECT_EQ(kept_tokenizer("none.json", run.path()), "none.json");
  const Folder files;
  test::write_vocabulary_and_merges(files, test::tokenizer_json("gpt2"));
  fs::create_directories(run / "tokenizer.part");  // of a run that was killed meanwhile
  files.write("tokenizer_config.json", "{}");
  ASSERT_EQ(keep_tokenizer(files.path(), run.path()), "");
  EXPECT_TRUE(fs::exists(run / "tokenizer/merges.txt"));
  EXPECT_FALSE(fs::exists(run / "tokenizer.part"));
}

}  // namespace
}  // namespace comera
