// Quitting with a run that ends slowly or badly, and runs that were interrupted before.
#include "app/studio/closing.h"

#include <unistd.h>

#include <filesystem>

#include "app/studio/actions.h"
#include "app/studio/interrupted.h"
#include "app/studio/preferences.h"
#include "core/store/process.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

using Closing = Clicked;

TEST_F(Closing, CanBeTakenBack) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  click("Cancel");
  EXPECT_FALSE(ui().close_requested);
  EXPECT_TRUE(stage_.script->posted.empty());
  EXPECT_FALSE(sees("Cancel"));
}

TEST_F(Closing, TellsHowOldTheLastCheckpointIs) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  EXPECT_TRUE(sees("says:Its last checkpoint is of step 600."));
  say([](Snapshot& s) { s.last_checkpoint_at = now_s() - 130; });
  EXPECT_TRUE(sees("says:Its last checkpoint is of step 600, 2 m 1"));
  say([](Snapshot& s) { s.last_checkpoint_step = -1; });
  EXPECT_TRUE(sees("says:It has no checkpoint yet."));
}

TEST_F(Closing, WaitsForTheCheckpointThenGoes) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  click("Checkpoint and quit");
  ASSERT_EQ(stage_.script->posted.size(), 1u);
  EXPECT_TRUE(std::get<StopCommand>(stage_.script->posted[0]).checkpoint);
  EXPECT_TRUE(sees("Keep the window open"));
  EXPECT_FALSE(sees("quit-now")) << "not at once";
  EXPECT_FALSE(ui().quit);
  say([](Snapshot& s) { s.phase = Phase::stopped; });
  frame();
  EXPECT_TRUE(ui().quit);
  EXPECT_FALSE(ui().closing.at_once);
}

TEST_F(Closing, TellsHowFarTheCheckpointIs) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  EXPECT_TRUE(sees("quit-drop"));
  click("Checkpoint and quit");
  EXPECT_TRUE(sees("says:Finishing the step after 900 ..."));
  say([](Snapshot& s) {
    s.phase = Phase::stopping;
    s.saving.step = 901;
  });
  EXPECT_TRUE(sees("says:Collecting the values of the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving = {901, 100 << 20, 400 << 20}; });
  EXPECT_TRUE(sees("says:Writing the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving.done = s.saving.total; });
  EXPECT_TRUE(sees("says:Waiting for the disk to have the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving = {}; });
  EXPECT_TRUE(sees("says:Closing the run in the store ..."));
  EXPECT_FALSE(ui().quit);
}

TEST_F(Closing, OffersToQuitAtOnceWhenItTakesLong) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  click("quit-drop");
  EXPECT_FALSE(std::get<StopCommand>(stage_.script->posted.at(0)).checkpoint);
  EXPECT_FALSE(sees("quit-now"));
  for (int i = 0; i < 11 * 60; ++i) frame();  // eleven seconds of the null backend's clock
  click("quit-now");
  EXPECT_TRUE(ui().quit);
  EXPECT_TRUE(ui().closing.at_once);
}

TEST_F(Closing, OffersToQuitAtOnceWhenItIsAskedTwice) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  click("Checkpoint and quit");
  EXPECT_FALSE(sees("quit-now"));
  ui().closing.insisted = true;
  EXPECT_TRUE(sees("quit-now"));
  click("Keep the window open");
  EXPECT_FALSE(ui().closing.insisted) << "the next time begins anew";
}

TEST_F(Closing, DoesNotGoSilentlyWithoutTheCheckpoint) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  click("Checkpoint and quit");
  say([](Snapshot& s) {
    s.phase = Phase::stopped;
    s.store_problem = "the checkpoint of step 900 was not written: no space left";
  });
  EXPECT_TRUE(sees("Quit anyway"));
  EXPECT_FALSE(ui().quit);
  click("Keep the window open");
  EXPECT_FALSE(ui().close_requested);
  EXPECT_FALSE(sees("Quit anyway"));
  ui().close_requested = true;
  click("Quit anyway");
  EXPECT_TRUE(ui().quit);
}

class Interrupted : public Clicked {
 protected:
  Interrupted() { ui().tells_interrupted = true; }
  void list(std::vector<RunRow> rows) {
    RunList list;
    list.rows = std::move(rows);
    list.loaded = true;
    ui().runs = std::make_shared<const RunList>(std::move(list));
  }
  static RunRow row(const char* id, const char* status, double heartbeat) {
    RunRow row;
    row.id = id;
    row.name = "demo";
    row.status = status;
    row.heartbeat = heartbeat;
    row.summary.step = 1234;
    row.summary.total_steps = 6000;
    return row;
  }
};

TEST_F(Interrupted, OneIsNamedUntilItIsDealtWith) {
  list({row("r-1", "finished", 50), row("r-2", "interrupted", 100)});
  EXPECT_TRUE(sees("says:1 run was interrupted: demo, at step 1,234 of 6,000."));
  EXPECT_TRUE(find("interrupted:Resume"));
  EXPECT_TRUE(find("interrupted:Show"));
  for (int i = 0; i < 60 * 10; ++i) frame();
  EXPECT_TRUE(find("interrupted:Dismiss")) << "it stays";
  click("interrupted:Dismiss");
  EXPECT_TRUE(ui().toasts.empty());
  list({row("r-2", "interrupted", 100)});
  EXPECT_FALSE(sees("says:1 run")) << "it was told";
  list({row("r-3", "interrupted", 200), row("r-2", "interrupted", 100)});
  EXPECT_TRUE(sees("says:1 run was interrupted")) << "the next one is new";
}

TEST_F(Interrupted, SeveralAreShownInTheList) {
  list({row("r-2", "interrupted", 100), row("r-3", "interrupted", 200)});
  EXPECT_TRUE(sees("says:2 runs were interrupted"));
  EXPECT_FALSE(find("interrupted:Resume")) << "which one?";
  ui().layout = "train";
  click("interrupted:Show");
  EXPECT_EQ(ui().layout, "start");
  EXPECT_EQ(ui().run_table.filter, "interrupted");
  EXPECT_EQ(ui().settings.interrupted_told, 200);
}

TEST_F(Interrupted, OneThatGoesOnIsNotToldAnyMore) {
  list({row("r-2", "interrupted", 100)});
  EXPECT_TRUE(sees("says:1 run"));
  list({row("r-2", "running", 300)});
  EXPECT_FALSE(sees("says:1 run"));
  EXPECT_TRUE(ui().toasts.empty());
}

TEST_F(Interrupted, OwnRunsAreNot) {
  stage_.begin_run(Phase::running);  // r-test01
  list({row("r-test01", "interrupted", 100)});
  EXPECT_FALSE(sees("says:1 run")) << "the machine was asleep, say";
}

TEST_F(Interrupted, WhatWasToldIsRemembered) {
  const std::string file = (std::filesystem::temp_directory_path() / ("comera-told-" + std::to_string(::getpid()) + ".json")).string();
  list({row("r-2", "interrupted", 123.5)});
  click("interrupted:Dismiss");
  save_preferences(ui(), file);
  UiState later;
  load_preferences(later, file);
  EXPECT_EQ(later.settings.interrupted_told, 123.5);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace comera::studio
