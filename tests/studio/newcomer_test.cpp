// What a newcomer is offered: the recorded run that ships, the dense twin of a run, the hint at the size target.
#include "app/studio/newcomer.h"

#include <algorithm>

#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "app/studio/shown_run/timeline.h"
#include "core/store/run_reader.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

namespace fs = std::filesystem;

// ---- The hint --------------------------------------------------------------------------------------------------

constexpr const char* kHint = "size-target-hint";
using Hint = Clicked;

TEST_F(Hint, StandsUnderTheSliderOfALateStageThatTrains) {
  stage_.begin_run(Phase::running);
  ASSERT_TRUE(sees(kHint));
  EXPECT_GE(find(kHint)->low.y, find("method.comera.target")->high.y);
  stage_.frames(4);  // it made the panel scroll
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  say([](Snapshot& s) { s.late = false; });
  EXPECT_FALSE(sees(kHint)) << "the target says nothing in the early stage";
  say([](Snapshot& s) { s.late = true; });
  ASSERT_TRUE(sees(kHint));
  say([](Snapshot& s) { s.phase = Phase::finished; });
  stage_.script->ended = true;
  EXPECT_FALSE(sees(kHint));
}

TEST_F(Hint, GoesAwayOnceTheSliderMoves) {
  stage_.begin_run(Phase::running);
  ASSERT_TRUE(sees(kHint));
  click("method.comera.target");
  EXPECT_FALSE(sees(kHint));
  EXPECT_FALSE(stage_.script->posted.empty());
}

TEST_F(Hint, OutlivesASliderThatMovesBeforeTheRanksFollow) {
  stage_.begin_run(Phase::running);
  say([](Snapshot& s) { s.late = false; });
  click("method.comera.target");
  EXPECT_FALSE(stage_.script->posted.empty());
  say([](Snapshot& s) { s.late = true; });
  EXPECT_TRUE(sees(kHint));
}

TEST_F(Hint, StaysAwayAfterItWasDismissed) {
  stage_.begin_run(Phase::running);
  click("dismiss-size-target-hint");
  EXPECT_FALSE(sees(kHint));
  EXPECT_TRUE(stage_.script->posted.empty()) << "no edit";
  const std::string file = (fs::temp_directory_path() / ("comera-hint-" + std::to_string(::getpid()) + ".json")).string();
  save_preferences(ui(), file);
  UiState later;
  load_preferences(later, file);
  fs::remove(file);
  EXPECT_FALSE(later.settings.size_target_hint);
  reset_settings(later);
  EXPECT_FALSE(later.settings.size_target_hint) << "for good";
}

// ---- The recorded run -------------------------------------------------------------------------------------------

TEST(Recorded, HasBothStagesEditsAndARegrowth) {
  ASSERT_FALSE(recorded_store().empty());
  EXPECT_LT(fs::file_size(recorded_store()), 2'000'000u);
  EXPECT_EQ(Database(recorded_store(), Database::Mode::read).number("PRAGMA user_version"), kSchemaVersion) << "it is never migrated";
  Replay replay(recorded_store(), kRecordedRun);
  EXPECT_EQ(replay.config_problem(), "");
  EXPECT_EQ(replay.row().status, "finished");
  const std::shared_ptr<RunView> view = view_of(replay, recorded_store());
  const auto count = [&](Mark::Kind kind) {
    return std::count_if(view->marks.begin(), view->marks.end(), [&](const Mark& mark) { return mark.kind == kind; });
  };
  EXPECT_GE(count(Mark::late_stage), 1);
  EXPECT_GE(count(Mark::growth), 1);
  EXPECT_GE(view->edits.size(), 3u);
  EXPECT_GT(view->rank_drops.size(), 100u);
  for (const char* name : {"recorded/runs.db-wal", "recorded/runs.db-shm"}) EXPECT_FALSE(fs::exists(assets_folder() + "/" + name));
}

using RecordedRun = StoreStage;

TEST_F(RecordedRun, PlaysAtOnceAndCannotBeChanged) {
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  ui().store_path = store_;
  const auto before = fs::last_write_time(recorded_store());
  replay_recorded(ui());
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_EQ(ui().layout, "train");
  EXPECT_EQ(ui().arrangement, "replay");
  EXPECT_TRUE(ui().timeline.playing);
  ASSERT_TRUE(until([&] { return cursor_step(ui()) > 5; })) << "it plays";
  const RunView& view = ui().shown();
  EXPECT_TRUE(is_recorded(view.store));
  EXPECT_STREQ(no_fork(ui(), 10), kWhyRecorded);
  EXPECT_STREQ(no_dense_twin(ui()), kWhyRecorded);
  EXPECT_EQ(offered_steps(ui()), 0);
  resume_run(ui(), kRecordedRun, {.extend = 10, .store = view.store});
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_TRUE(stage_->started.resume_run.empty());
  ASSERT_FALSE(ui().toasts.empty());
  EXPECT_EQ(ui().toasts.back().text, kWhyRecorded);
  EXPECT_EQ(fs::last_write_time(recorded_store()), before);
}

// ---- The dense twin --------------------------------------------------------------------------------------------

class DenseTwin : public StoreStage {
 protected:
  DenseTwin() {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().store_path = store_;
  }

  // The run in front comes to its end.
  void end(const std::string& run, Phase phase = Phase::finished) {
    stage_->say([&](Snapshot& s) {
      s.run = run;
      s.phase = phase;
    });
    stage_->script->ended = true;
    stage_->frames();
  }

  void finish_demo() {
    stage_->begin_run(Phase::running);
    stage_->say([](Snapshot& s) { s.name = "demo"; });
    stage_->frames();
    EXPECT_NE(no_dense_twin(ui()), nullptr) << "it trains";
    end("r-demo");
    stage_->script = std::make_shared<Script>();  // of the next session
    stage_->script->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 1));
  }
};

TEST_F(DenseTwin, IsOfferedAtTheEndOfTheDemoAndComparedAtItsOwn) {
  finish_demo();
  ASSERT_EQ(ui().toasts.size(), 1u);
  ASSERT_FALSE(ui().toasts[0].offers.empty());
  EXPECT_EQ(ui().toasts[0].offers[0].label, "Train the dense twin and compare");
  const int64_t steps = ui().shown().snapshot->total_steps;
  const auto act = ui().toasts[0].offers[0].act;
  act(ui());
  const RunConfig& config = stage_->started.config;
  EXPECT_EQ(config.method.weights, "dense");
  EXPECT_EQ(config.method.optimizer, "adamw");
  EXPECT_EQ(config.train.steps, steps);
  EXPECT_EQ(config.train.max_steps_per_s, 0);
  EXPECT_EQ(ui().layout, "train");
  stage_->frames();
  EXPECT_EQ(ui().layout, "train");
  end("r-twin");
  EXPECT_EQ(ui().layout, "compare");
  ASSERT_EQ(ui().compare.runs.size(), 2u);
  EXPECT_EQ(ui().compare.baseline, "r-twin");
  EXPECT_TRUE(ui().compare.find("r-demo"));
}

TEST_F(DenseTwin, IsOfferedUntilAnotherRunBegins) {
  finish_demo();
  ASSERT_EQ(ui().toasts.size(), 1u);
  ASSERT_TRUE(start_preset(ui(), "demo"));
  stage_->frames();
  EXPECT_TRUE(ui().toasts.empty());
}

TEST_F(DenseTwin, IsNotComparedWhereItDidNotFinish) {
  finish_demo();
  train_dense_twin(ui());
  end("r-twin", Phase::stopped);
  EXPECT_EQ(ui().layout, "train");
  EXPECT_TRUE(ui().compare.runs.empty());
}

TEST_F(DenseTwin, AnotherRunThatIsStartedMeanwhileIsNotTheTwin) {
  finish_demo();
  train_dense_twin(ui());
  stage_->frames();
  stage_->script = std::make_shared<Script>();
  stage_->script->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 1));
  ASSERT_TRUE(start_preset(ui(), "demo"));
  end("r-other");
  EXPECT_EQ(ui().layout, "train");
}

TEST_F(DenseTwin, SaysThatItIsThereWhereSomethingElseIsLookedAt) {
  finish_demo();
  train_dense_twin(ui());
  stage_->frames();
  show_layout(ui(), "start");
  end("r-twin");
  EXPECT_EQ(ui().layout, "start");
  const auto told = std::find_if(ui().toasts.begin(), ui().toasts.end(), [](const Toast& toast) { return toast.id == "dense-twin"; });
  ASSERT_NE(told, ui().toasts.end());
  const auto compare = told->offers.at(0).act;
  compare(ui());
  EXPECT_EQ(ui().layout, "compare");
}

}  // namespace
}  // namespace comera::studio
