// The model of a stored run becomes a file, from the list of runs.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/studio/runs/run_actions.h"
#include "core/session/folder_run.h"
#include "core/session/session.h"
#include "core/store/run_writer.h"
#include "core/tensor/safetensors.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class ModelOfARun : public StoreStage {
 protected:
  ModelOfARun() {
    ui().store_path = store_;
    ui().exports.folder = (folder_ / "out").string();
  }

  std::string told(const std::string& id, RunChange::Kind as) {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().toasts.clear();
    export_runs(ui(), {id}, as);
    EXPECT_TRUE(until([&] { return !ui().toasts.empty(); }));
    return ui().toasts.back().text;
  }
};

TEST_F(ModelOfARun, IsWrittenFromItsLastCheckpoint) {
  SessionStart start;
  start.store = store_;
  start.config =
      load_config("demo", {"train.steps=3", "train.threads=1", "train.eval_every=0", "data.train_rows=512", "data.validation_rows=64"});
  Session session(start);
  ASSERT_TRUE(session.wait(60));
  const std::string id = session.latest()->run;
  const std::string text = told(id, RunChange::export_model);
  const std::string path = (folder_ / "out" / (id + ".safetensors")).string();
  ASSERT_EQ(text, "Written: " + path);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.values("fc0.core.0").size(), 784u * 64u);
  EXPECT_EQ(told(id, RunChange::export_model), "Written: " + (folder_ / "out" / (id + "-2.safetensors")).string())
      << "nothing is overwritten";
  EXPECT_NE(told(id, RunChange::export_official).find("has no name in the published model"), std::string::npos)
      << "an image network was not published";
}

TEST_F(ModelOfARun, OfALanguageModelIsAFolderOrAGgufFile) {
  SessionStart start;
  start.store = store_;
  start.config = load_config("llama-10m", {"train.steps=2", "train.threads=1", "train.eval_every=0", "train.batch=2", "model.length=32",
                                           "model.decoder.layers=1", "model.decoder.d_model=32", "model.decoder.heads=2",
                                           "model.decoder.d_ff=64", "data.set=" + (folder_ / "words.txt").string()});
  std::ofstream words(folder_ / "words.txt");
  for (int i = 0; i < 2000; ++i) words << "word " << i << '\n';
  words.close();
  Session session(start);
  ASSERT_TRUE(session.wait(60)) << session.latest()->message << session.latest()->error_why;
  const std::string id = session.latest()->run, out = (folder_ / "out" / id).string();
  for (const auto& [kind, path, file] : {std::tuple(RunChange::export_huggingface, out + "-huggingface", "/model.safetensors"),
                                         std::tuple(RunChange::export_gguf, out + ".gguf", "")}) {
    const std::string text = told(id, kind);
    EXPECT_TRUE(text.starts_with("Written: " + path + "; read again, no logit differs by more than ")) << text;
    EXPECT_TRUE(std::filesystem::exists(path + file));
  }
  EXPECT_TRUE(told(id, RunChange::export_huggingface).starts_with("Written: " + out + "-huggingface-2; ")) << "nothing is overwritten";
}

// The factors of a run that began with a folder of the transformers library, and of a fork of it.
TEST_F(ModelOfARun, WithLoraIsAnAdapterOfTheFolderThatItBeganWith) {
  namespace fs = std::filesystem;
  const fs::path base = folder_ / "base";
  fs::create_directories(base);
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(fs::path(COMERA_SOURCE_DIR "/tests/golden_models/bert_mlm") / name, base / name);
  std::ifstream config_file(base / "config.json");
  const auto tokens = Json::parse(config_file).at("vocab_size").get<int>();
  std::ofstream vocab(base / "vocab.txt");
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "is", "good", "bad", "dog"}) vocab << token << '\n';
  for (int i = 10; i < tokens; ++i) vocab << "[unused" << i << "]\n";
  vocab.close();
  std::ofstream rows(folder_ / "moods.tsv");
  rows << "mood\treview\n";
  for (int i = 0; i < 40; ++i) rows << (i % 2 ? "good\tthe dog is good\n" : "bad\tthe dog is bad\n");
  rows.close();
  const auto trained = [&](const std::string& weights) {
    SessionStart start;
    start.store = store_;
    start.config =
        folder_config(base.string(), {"model.task=classification", "data.set=" + (folder_ / "moods.tsv").string(),
                                      "data.text_column=review", "data.label_column=mood", "method.weights=" + weights, "train.batch=4",
                                      "model.length=8", "train.steps=3", "train.eval_every=0", "train.threads=1"});
    start.folder.path = base.string();
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(60));
    session.join();
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << session.latest()->error_why;
    return session.latest()->run;
  };
  std::string id = trained("lora");
  for (const char* steps : {"5", "7"}) {  // the run, then its fork
    const std::string path = (folder_ / "out" / (id + "-peft")).string(), text = told(id, RunChange::export_peft);
    EXPECT_TRUE(text.starts_with("Written: " + path + "; read again, no logit differs by more than ")) << text;
    EXPECT_TRUE(fs::exists(path + "/adapter_config.json") && fs::exists(path + "/adapter_model.safetensors"));
    SessionStart fork;
    fork.store = store_;
    fork.fork_run = id;
    fork.sets = {std::string("train.steps=") + steps};
    Session session(std::move(fork));
    ASSERT_TRUE(session.wait(60));
    session.join();
    id = session.latest()->run;
  }
  EXPECT_NE(told(trained("dense"), RunChange::export_peft).find("the run has no factors of LoRA"), std::string::npos);
  fs::remove_all(base);
  const std::string refused = told(id, RunChange::export_peft);
  EXPECT_TRUE(refused.starts_with("the base model of run " + id + " is not known")) << refused;
}

TEST_F(ModelOfARun, NeedsACheckpoint) {
  std::string id;
  {
    RunWriter writer(store_, a_start("bare"));
    id = writer.run_id();
    writer.finish("stopped");
  }
  EXPECT_NE(told(id, RunChange::export_model).find("has no checkpoint"), std::string::npos);
}

}  // namespace
}  // namespace comera::studio
