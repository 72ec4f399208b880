// Files that were damaged at random: each format reads them or says what is wrong, and does nothing else.
#include <cstdlib>
#include <functional>
#include <random>

#include "core/data/criteo.h"
#include "core/data/datasets.h"
#include "core/data/picture.h"
#include "tests/data/damaged.h"
#include "tests/data/pictures.h"
#include "tests/data/support.h"
#include "tests/data/tokenizers.h"

namespace comera {
namespace {

using test::damaged;
using test::Folder;

void read_damaged(const std::string& name, const std::string& good, int count, const std::function<void(const std::string& path)>& read) {
  const Folder folder;
  std::mt19937_64 random(11);
  int opened = 0;
  for (int i = 0; i < count; ++i) {
    const std::string path = folder.write(std::to_string(i) + name, damaged(good, random));
    try {
      read(path);
      ++opened;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::other) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  std::cout << name << ": " << opened << " of " << count << " can be read\n";
}

void read_all(const DataSpec& spec) {
  const auto data = open_dataset(spec);
  for (int64_t row = 0; row < data->info().rows; ++row) {
    Columns columns;
    data->read(row, 16, columns);
    data->shown(row, 16);
  }
}

TEST(Hostile, TextsWithColumns) {
  const std::string csv = "id,review,mood\n1,\"Good, and\ncheap\",glad\n2,\"She said \"\"no\"\"\",angry\n3,plain,calm\n";
  const std::string json = "{\"review\": \"one two\", \"mood\": \"glad\"}\n{\"review\": \"three \\\"four\\\"\", \"mood\": \"calm\"}\n";
  const Folder folder;
  const std::string vocab = folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\none\ngood\n");  // read in no time
  for (const TextTask task : {TextTask::classification, TextTask::language}) {
    const auto read = [&](const std::string& path) {
      read_all({.path = path, .vocab = vocab, .columns = {"review", "", "mood"}, .task = task, .length = 4});
    };
    read_damaged(".csv", csv, 150, read);
    read_damaged(".jsonl", json, 150, read);
  }
}

TEST(Hostile, ClickLogs) {
  const Folder cache;
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  std::string good;
  for (int row = 0; row < 5; ++row) {
    good += row % 2 ? "1" : "0";
    for (int c = 0; c < 13; ++c) good += "\t" + std::to_string(row * c - 7);
    for (int c = 0; c < 26; ++c) good += "\tv" + std::to_string(row * c % 3);
    good += "\n";
  }
  for (const bool packed : {false, true})
    read_damaged(packed ? ".txt.gz" : ".tsv", packed ? test::gzip(good) : good, 150, [](const std::string& path) {
      const CriteoDataset data(path, path, 1, {});
      for (int64_t row = 0; row < data.info().rows; ++row) {
        Columns columns;
        data.read(row, 1, columns);
        for (int c = 0; c < kCriteoCategories; ++c)
          ASSERT_LT(columns.ints.at("category" + std::to_string(c))[0], data.info().tables[static_cast<size_t>(c)]);
      }
    });
  kept.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

TEST(Hostile, Pictures) {
  const Picture picture = test::some_picture(9, 12, 3);
  const auto read = [](const std::string& path) {
    const Picture read = fitted(read_picture(path, test::read_file(path)), 4, 4);
    ASSERT_EQ(read.pixels.size(), static_cast<size_t>(16 * read.channels));
  };
  std::vector<unsigned char> places;
  for (int i = 0; i < 9 * 12; ++i) places.push_back(static_cast<unsigned char>(i % 3));
  read_damaged(".png", test::png_bytes(picture), 400, read);
  read_damaged(
      "-palette.png",
      test::png_bytes(
          9, 12, {.type = PNG_COLOR_TYPE_PALETTE, .interlaced = true, .palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, .transparent = {0}},
          places),
      400, read);
  read_damaged(".jpg", test::jpeg_bytes(picture), 400, read);
  read_damaged("-progressive.jpg", test::jpeg_bytes(picture, true), 400, read);
}

void encode_some(const std::string& path) {
  const auto tokenizer = open_tokenizer(path);
  const std::vector<int32_t> ids = tokenizer->encode_with_specials("one Two 3,\xff \xe2\x80\xa6 <s>", "b");
  for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer->size());
  tokenizer->decode(ids);
}

TEST(Hostile, Tokenizers) {
  for (const char* name : {"gpt2", "llama", "bert_uncased"})
    read_damaged(std::string(name) + ".json", test::read_file((test::tokenizers() / name / "tokenizer.json").string()), 60, encode_some);
}

TEST(Hostile, VocabulariesAndMerges) {
  const Folder folder;
  test::write_vocabulary_and_merges(folder, test::tokenizer_json("roberta"));
  for (const char* name : {"vocab.json", "merges.txt"}) {
    const Folder good;
    test::write_vocabulary_and_merges(good, test::tokenizer_json("roberta"));
    read_damaged(name, test::read_file(folder / name), 60, [&](const std::string& path) {
      std::filesystem::copy_file(path, good / name, std::filesystem::copy_options::overwrite_existing);
      encode_some(good.path());
    });
  }
  read_damaged("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhel\n##lo\n", 60, encode_some);
}

}  // namespace
}  // namespace comera
