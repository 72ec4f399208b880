// Data of every kind bring a preset whose model takes them: the config that comes out trains.
#include "core/session/data_suit.h"

#include "core/data/datasets.h"
#include "tests/session/support.h"

namespace comera {
namespace {

std::string write(const test::Folder& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder.file(name), std::ios::binary) << bytes;
  return folder.file(name);
}

// Some steps of the preset with everything that is suggested.
RunConfig trained(const DataSuit& suit) {
  std::vector<std::string> sets = sets_for(suit, load_config(suit.preset, {}));
  sets.insert(sets.end(), suit.more.begin(), suit.more.end());
  for (const char* quick :
       {"train.epochs=0", "train.steps=2", "train.batch=4", "train.eval_every=0", "train.checkpoint_every=0", "train.threads=1"})
    sets.emplace_back(quick);
  SessionStart start;
  start.config = load_config(suit.preset, sets);
  EXPECT_TRUE(takes(start.config, suit));
  Session session(start);
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": " << session.latest()->error_why;
  return load_config(suit.preset, sets_for(suit, load_config(suit.preset, {})));
}

std::string texts(const std::string& header) {
  std::string out = header + "\n";
  for (int i = 0; i < 40; ++i)
    out += std::to_string(i) + "\tthe first text of row " + std::to_string(i) + "\ta second one\t" + (i % 2 ? "yes" : "no") + "\n";
  return out;
}

TEST(DataSuit, TextsAndPairsOfTexts) {
  const test::Folder folder;
  const DataSuit suit = suit_data(write(folder, "a.tsv", texts("id\tbody\trest\tanswer")));
  EXPECT_EQ(suit.preset, "encoder2-nli");
  EXPECT_EQ(suit.about, "40 texts (body), 2 classes (answer)");
  const RunConfig config = trained(suit);
  EXPECT_EQ(config.data.text_column, "body");
  EXPECT_EQ(config.data.label_column, "answer");
  EXPECT_EQ(config.model.classes, 2);
  const DataSuit pair = suit_data(write(folder, "b.tsv", texts("id\tsentence1\tsentence2\tanswer")));
  EXPECT_EQ(pair.about, "40 pairs of texts (sentence1, sentence2), 2 classes (answer)");
  trained(pair);
  const DataSuit large = suit_data(write(folder, "c.csv", [] {
    std::string rows = "body,answer\n,yes\n";
    for (int i = 0; i < 639; ++i) rows += "the text of row " + std::to_string(i) + (i % 2 ? ",yes\n" : ",no\n");
    return rows;
  }()));
  EXPECT_EQ(large.about, "639 texts (body), 2 classes (answer); 1 without a text or a label left out");
  EXPECT_NE(std::find(large.more.begin(), large.more.end(), "train.eval_every=18"), large.more.end()) << "576 rows train, 63 validate";
}

TEST(DataSuit, ImagesAndRunningText) {
  const test::Folder folder;
  const DataSuit images = suit_data("fashion-mnist-demo");
  EXPECT_EQ(images.preset, "mlp-fashion");
  const RunConfig config = trained(images);
  EXPECT_EQ(config.model.mlp.inputs, 784);
  EXPECT_EQ(config.model.classes, 10);
  // A model of another kind that takes images gets its own settings of them.
  const std::vector<std::string> of_cnn = sets_for(images, load_config("cnn-fashion", {}));
  EXPECT_TRUE(takes(load_config("cnn-fashion", {}), images));
  EXPECT_FALSE(takes(load_config("encoder2-nli", {}), images));
  EXPECT_NE(std::find(of_cnn.begin(), of_cnn.end(), "model.cnn.height=28"), of_cnn.end());
  EXPECT_EQ(std::count_if(of_cnn.begin(), of_cnn.end(), [](const std::string& set) { return set.starts_with("model.mlp"); }), 0);
  std::string words;
  for (int i = 0; i < 4000; ++i) words += "word " + std::to_string(i) + (i % 9 ? " " : "\n");
  const DataSuit text = suit_data(write(folder, "train.txt", words));
  EXPECT_EQ(text.preset, "llama-10m");
  EXPECT_EQ(load_config(text.preset, text.sets).data.set, folder.file("train.txt"));
}

TEST(DataSuit, TextsWithoutLabelsAreForALanguageModel) {
  const test::Folder folder;
  std::string rows = "id,body\n";
  for (int i = 0; i < 200; ++i) rows += std::to_string(i) + ",the text of row " + std::to_string(i * 7919 % 1000) + "\n";
  const DataSuit table = suit_data(write(folder, "a.csv", rows));
  EXPECT_EQ(table.preset, "llama-10m");
  EXPECT_EQ(table.about, "texts (body) for a language model");
  EXPECT_EQ(trained(table).data.text_column, "body");
  std::filesystem::create_directory(folder.file("src"));
  for (const char* name : {"src/a.py", "src/b.py"}) write(folder, name, rows);
  const DataSuit files = suit_data(folder.file("src"));
  EXPECT_EQ(files.about, "text files for a language model");
  trained(files);
}

// One rule for the window, which has a form with a preset, and the command line, which chooses the preset.
TEST(DataSuit, ASmallSetGetsABatchThatItFillsSeveralTimes) {
  const auto batch_in = [](const std::vector<std::string>& sets) {
    int64_t batch = 0;
    for (const std::string& set : sets)
      if (set.starts_with("train.batch=")) batch = std::stol(set.substr(12));
    return batch;
  };
  const RunConfig preset = load_config("mlp-fashion", {});
  const int64_t usual = preset.train.batch;
  ASSERT_GE(usual, 16);
  EXPECT_EQ(batch_in(sizes_for(preset, 8 * usual)), 0) << "it stays";
  EXPECT_EQ(batch_in(sizes_for(preset, 8 * usual - 1)), usual / 2);
  EXPECT_EQ(batch_in(sizes_for(preset, 36)), 4);
  EXPECT_EQ(batch_in(sizes_for(preset, 3)), 1);
  EXPECT_EQ(batch_in(sizes_for(preset, 36, {"train.batch"})), 0) << "somebody chose it";
  EXPECT_EQ(batch_in(sizes_for(load_config("llama-10m", {}), 36)), 0) << "its rows are pieces of a text";
  const test::Folder folder;
  const DataSuit suit = suit_data(write(folder, "a.tsv", texts("id\tbody\trest\tanswer")));
  EXPECT_EQ(suit.trained_on, 36) << "4 of 40 are held out";
  EXPECT_EQ(batch_in(suit.more), 4);
  EXPECT_TRUE(sizes_for(load_config(suit.preset, suit.more), suit.trained_on).empty()) << "it fits already";
  // Modes of the preset's own size are chosen anew, other ones that somebody set stay.
  RunConfig modes = preset;
  modes.model.tt.ffn_in.in_modes = {28, 28};
  modes.model.mlp.inputs = 256;
  std::vector<std::string> sets = sizes_for(modes, 100'000);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0], "model.tt.ffn_in.in_modes=[]");
  EXPECT_TRUE(sizes_for(modes, 100'000, {"model.tt.ffn_in.in_modes"}).empty());
}

TEST(DataSuit, WhatCannotBeReadSaysSo) {
  const test::Folder folder;
  const auto refused = [&](const std::string& path) {
    try {
      suit_data(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::filesystem::create_directory(folder.file("empty"));
  EXPECT_EQ(refused(folder.file("empty")), folder.file("empty") + " has no split 'train'");
  EXPECT_NE(refused(folder.file("nothing.csv")).find("there is no data at"), std::string::npos);
}

}  // namespace
}  // namespace comera
