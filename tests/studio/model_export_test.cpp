// The model of a stored run becomes a file, from the list of runs.
#include <nlohmann/json.hpp>

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
