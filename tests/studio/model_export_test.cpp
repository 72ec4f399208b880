// The model of a stored run becomes a file, from the list of runs.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/studio/runs/run_actions.h"
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
