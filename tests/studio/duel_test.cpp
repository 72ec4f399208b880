// Duels in the window: the plan in the form is that of plan_duel, the runs are those of `comera duel`, and none is trained twice.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/dueling.h"
#include "app/studio/parts/named_items.h"
#include "core/session/session.h"
#include "core/store/run_reader.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class DuelWindow : public StoreStage {
 protected:
  DuelWindow() {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().store_path = store_;
    collect_items(&items_);
    stage_->resize({1600, 2600});
    open(3);
  }
  ~DuelWindow() override { collect_items(nullptr); }

  // The form with a small network of some steps, in the view of all methods.
  void open(int64_t steps) {
    open_form(ui(), "demo");
    EXPECT_TRUE(until([&] { return ui().form.ready && !ui().form.looking; }));
    RunConfig& config = ui().form.config;
    config.train.steps = steps;
    config.train.threads = 1;
    config.train.batch = 16;
    config.train.eval_every = 0;
    config.train.max_steps_per_s = 0;
    config.model.mlp.hidden = {96, 64};
    form_changed(ui(), "");
    ui().form.methods.shown = true;
    settle();
  }
  void settle() {
    ASSERT_TRUE(until([&] { return ui().form.all_looked(); }));
    frame();
  }
  void frame() {
    for (int i = 0; i < 3; ++i) {
      items_.clear();
      stage_->frames(1);
    }
  }
  const NamedItem* find(const std::string& name) const {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const NamedItem& item) { return item.name.starts_with(name); });
    return found == items_.end() ? nullptr : &*found;
  }
  void click(const std::string& name) {
    frame();
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const NamedItem& item) { return item.name == name; });
    ASSERT_NE(found, items_.end()) << name;
    const NamedItem item = *found;
    ImGui::GetIO().AddMousePosEvent((item.low.x + item.high.x) / 2, (item.low.y + item.high.y) / 2);
    stage_->frames(1);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
      stage_->frames(1);
    }
    frame();
  }
  void tick(const std::vector<std::string>& methods) {
    for (const std::string& id : methods) {
      click("in-duel:" + id);
      settle();  // its plan moves the rows below
    }
  }
  // Trains for real; small frames leave it the processor.
  void train() {
    ui().open_session = start_session;
    stage_->resize({1000, 700});
  }
  Duel duel(const std::vector<std::string>& methods, int64_t seeds = 1, int64_t bytes = 0) {
    return {.config = ui().form.config, .methods = methods, .bytes = bytes, .seeds = seeds};
  }
  static std::string text(const RunConfig& config) { return config_to_json(config).dump(); }
  std::vector<RunRow> stored() const {
    std::vector<RunRow> rows = RunReader(store_).runs();
    std::reverse(rows.begin(), rows.end());
    return rows;
  }
  bool ends() {
    return until([&] { return !ui().queue; });
  }

  std::vector<NamedItem> items_;
};

TEST_F(DuelWindow, ShowsThePlanOfEachChosenMethod) {
  EXPECT_TRUE(ui().form.duel.chosen.empty());
  EXPECT_NE(no_duel(ui()), "");
  tick({"adamw", "galore", "comera"});
  click("duel-memory");
  stage_->type("1MiB");
  stage_->press(ImGuiKey_Enter);
  ui().form.duel.seeds = 2;
  settle();
  const std::vector<DuelMethod> planned = plan_duel(duel({"adamw", "galore", "comera"}, 2, ui().form.duel.bytes));
  EXPECT_EQ(ui().form.duel.bytes, 1 << 20);
  const std::vector<DuelMethod> shown = ui().form.duel.methods();
  ASSERT_EQ(shown.size(), planned.size());
  for (const DuelMethod& method : planned) {
    const auto same = std::find_if(shown.begin(), shown.end(), [&](const DuelMethod& one) { return one.id == method.id; });
    ASSERT_NE(same, shown.end()) << method.id;
    EXPECT_EQ(same->planned, method.planned) << method.id;
    EXPECT_EQ(same->fits, method.fits) << method.id;
    EXPECT_EQ(same->rank, method.rank) << method.id;
    ASSERT_EQ(same->runs.size(), method.runs.size()) << method.id;
    for (size_t i = 0; i < method.runs.size(); ++i) EXPECT_EQ(text(same->runs[i]), text(method.runs[i])) << method.id;
    const std::string bytes = mebibytes(static_cast<double>(method.planned));
    const NamedItem* note = find("says:" + method.id + ": Duel: ");
    ASSERT_TRUE(note) << method.id;
    const std::string told = !method.refusal.empty() ? "refused: " + method.refusal : (method.fits ? "peak " : "at least ") + bytes;
    EXPECT_NE(note->name.find(told), std::string::npos) << note->name;
    if (method.trains() && method.rank) {
      EXPECT_NE(note->name.find("rank " + std::to_string(*method.rank)), std::string::npos) << note->name;
    }
  }
  EXPECT_FALSE(find("says:galore+adam8bit: Duel")) << "not chosen";
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

TEST_F(DuelWindow, SaysWhyItCannotStart) {
  tick({"adamw"});
  EXPECT_EQ(no_duel(ui()), "");
  set_duel_memory(ui().form.duel, "much");
  EXPECT_NE(no_duel(ui()).find("'much' is not a size"), std::string::npos);
  set_duel_memory(ui().form.duel, "1KiB");
  settle();
  EXPECT_NE(no_duel(ui()).find("No chosen method fits into"), std::string::npos);
  EXPECT_TRUE(find("says:adamw: Duel: does not fit, needs at least"));
  set_duel_memory(ui().form.duel, "");
  ui().form.config.train.batch = 0;
  form_changed(ui(), "train.batch");
  settle();
  EXPECT_NE(no_duel(ui()).find("refuse every chosen method"), std::string::npos);
  start_duel(ui());
  EXPECT_FALSE(ui().queue);
}

TEST_F(DuelWindow, StartsTheFirstRunThatIsMissing) {
  const std::vector<DuelMethod> methods = plan_duel(duel({"adamw", "galore"}));
  SessionStart first;
  first.config = methods[0].runs[0];
  first.store = store_;
  first.tags = {kDuelTag};
  Session session(first);
  ASSERT_TRUE(session.wait(60));
  session.join();
  tick({"adamw", "galore"});
  click("duel-start");
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(text(stage_->started.config), text(methods[1].runs[0]));
  EXPECT_EQ(stage_->started.tags, std::vector<std::string>{kDuelTag});
  EXPECT_EQ(stage_->started.store, store_);
  EXPECT_TRUE(stage_->started.resume_run.empty());
  EXPECT_EQ(queue_progress(*ui().queue), "2 of 2: galore seed " + std::to_string(methods[1].runs[0].train.seed));
  EXPECT_EQ(ui().layout, "train");
}

TEST_F(DuelWindow, TrainsEachRunOnceAndOpensTheComparison) {
  const std::vector<DuelMethod> methods = plan_duel(duel({"adamw", "galore"}, 2));
  tick({"galore", "adamw"});
  ui().form.duel.seeds = 2;
  train();
  perform(ui(), "duel.start");
  ASSERT_TRUE(ui().queue);
  ASSERT_TRUE(until([&] { return !ui().queue; }));
  std::vector<RunRow> runs = stored();
  ASSERT_EQ(runs.size(), 4u);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].status, "finished") << runs[i].message;
    EXPECT_EQ(runs[i].tags, std::vector<std::string>{kDuelTag});
    EXPECT_EQ(runs[i].name, methods[i % 2].runs[i / 2].name) << "seed by seed";
  }
  EXPECT_EQ(ui().layout, "compare");
  ASSERT_TRUE(until([&] { return all_read(ui().compare); }));
  stage_->frames();
  EXPECT_EQ(ui().compare.front_tab, "pareto");
  ASSERT_EQ(ui().compare.runs.size(), 2u) << "one a method";
  for (const size_t i : {size_t{0}, size_t{1}}) EXPECT_TRUE(ui().compare.find(runs[i].id));
  // Once more: nothing is left to train.
  open_form(ui());
  settle();
  const LiveRun* last = ui().live.get();
  start_duel(ui());
  ASSERT_TRUE(ends());
  EXPECT_EQ(ui().live.get(), last);
  EXPECT_EQ(stored().size(), 4u);
  EXPECT_EQ(ui().layout, "compare");
}

TEST_F(DuelWindow, StopsWithACheckpointAndContinues) {
  open(100'000);
  tick({"adamw", "galore"});
  train();
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live && ui().live->view().snapshot->step > 2; }));
  stop_queue(ui());
  ASSERT_TRUE(ends());
  std::vector<RunRow> runs = stored();
  ASSERT_EQ(runs.size(), 1u) << "the duel has stopped";
  EXPECT_EQ(runs[0].status, "stopped");
  const int64_t step = runs[0].summary.step;
  EXPECT_FALSE(RunReader(store_).checkpoints(runs[0].id).empty());
  open_form(ui());
  settle();
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live && !ui().live->view().ended() && ui().live->view().snapshot->step > step; }));
  EXPECT_EQ(ui().live->run(), runs[0].id) << "continued";
  ui().live->stop(true);  // as Stop of any run does
  ASSERT_TRUE(ends());
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(DuelWindow, AnotherRunEndsIt) {
  tick({"adamw", "galore"});
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  stage_->script = std::make_shared<Script>();
  ASSERT_TRUE(start_preset(ui(), "demo"));
  stage_->frames();
  EXPECT_FALSE(ui().queue);
  EXPECT_EQ(stage_->started.config.name, "demo");
}

// A run with an edit is not found again as one of the duel.
TEST_F(DuelWindow, CheckpointsOfTheSettingsAreNoEditOfItsRuns) {
  ui().settings.autosave_minutes = 5;
  const auto edits = [&] {
    return std::any_of(stage_->script->posted.begin(), stage_->script->posted.end(),
                       [](const Command& command) { return std::holds_alternative<EditCommand>(command); });
  };
  const auto prepare = [&] {
    stage_->script = std::make_shared<Script>();
    stage_->say([](Snapshot& s) { s.phase = Phase::preparing; });
  };
  const auto run = [&] {
    stage_->frames();
    stage_->say([](Snapshot& s) { s.phase = Phase::running; });
    stage_->frames();
  };
  tick({"adamw", "galore"});
  prepare();
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  run();
  EXPECT_FALSE(edits());
  prepare();
  ASSERT_TRUE(start_preset(ui(), "demo"));
  run();
  EXPECT_TRUE(edits()) << "of another run they are";
}

TEST_F(DuelWindow, TheNextRunLeavesThePageAlone) {
  tick({"adamw", "galore"});
  train();
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  show_layout(ui(), "start");
  ASSERT_TRUE(ends());
  EXPECT_EQ(ui().layout, "start");
  EXPECT_EQ(stored().size(), 2u);
  const auto told = std::find_if(ui().toasts.begin(), ui().toasts.end(), [](const Toast& toast) { return toast.id == "duel"; });
  ASSERT_NE(told, ui().toasts.end());
  const auto compare = told->offers.at(0).act;
  compare(ui());
  EXPECT_EQ(ui().layout, "compare");
}

TEST_F(DuelWindow, IsUsableInTheSmallestWindow) {
  stage_->resize({960, 600}, 3);
  choose_all_for_duel(ui().form.duel, true);
  set_duel_memory(ui().form.duel, "1MiB");
  settle();
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  start_duel(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  show_layout(ui(), "new");
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

}  // namespace
}  // namespace comera::studio
