// Duels in the window: the plan in the form is that of plan_duel, the runs are those of `comera duel`, and none is trained twice.
#include <algorithm>
#include <tuple>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/dueling.h"
#include "core/session/session.h"
#include "tests/studio/form_window.h"

namespace comera::studio {
namespace {

class DuelWindow : public FormWindow {
 protected:
  DuelWindow() { open(3); }

  // In the view of all methods.
  void open(int64_t steps) {
    FormWindow::open(steps);
    ui().form.methods.shown = true;
    settle();
  }
  void tick(const std::vector<std::string>& methods) {
    for (const std::string& id : methods) {
      click("in-duel:" + id);
      settle();  // its plan moves the rows below
    }
  }
  Duel duel(const std::vector<std::string>& methods, int64_t seeds = 1, int64_t bytes = 0) {
    return {.config = ui().form.config, .methods = methods, .bytes = bytes, .seeds = seeds};
  }
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

TEST_F(DuelWindow, ABareNumberIsOfMebibytes) {
  DuelPlan& plan = ui().form.duel;
  for (const auto& [typed, bytes, shown] : {std::tuple<const char*, int64_t, const char*>{"1", 1 << 20, "1MiB"},
                                            {"1.5 ", 3 << 19, "1.5 MiB"},
                                            {"2KiB", 2048, "2KiB"},
                                            {"", 0, ""}}) {
    set_duel_memory(plan, typed);
    EXPECT_EQ(plan.bytes, bytes) << typed;
    EXPECT_EQ(plan.memory, shown);
    EXPECT_EQ(plan.problem, "");
  }
}

}  // namespace
}  // namespace comera::studio
