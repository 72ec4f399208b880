// Quitting with a run that ends slowly or badly, and runs that were interrupted before.
#include "app/studio/closing.h"

#include <unistd.h>

#include <filesystem>
#include <future>

#include "app/studio/actions.h"
#include "app/studio/interrupted.h"
#include "app/studio/preferences.h"
#include "app/studio/runs/run_actions.h"
#include "core/store/process.h"
#include "core/store/run_writer.h"
#include "core/store/sqlite.h"
#include "tests/store/support.h"
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
  EXPECT_TRUE(sees("says:Its last checkpoint is at step 600."));
  say([](Snapshot& s) { s.last_checkpoint_at = now_s() - 130; });
  EXPECT_TRUE(sees("says:Its last checkpoint is at step 600, 2 m 1"));
  say([](Snapshot& s) { s.last_checkpoint_step = -1; });
  EXPECT_TRUE(sees("says:It has no checkpoint yet."));
}

TEST_F(Closing, SaysHowManyStepsAreLostWithoutACheckpoint) {
  stage_.begin_run(Phase::running);
  ui().close_requested = true;
  for (const auto& [checkpoint, text] : {std::pair<int64_t, const char*>{-1, "Quit without saving any step"},
                                         {600, "Quit without saving the last 300 steps"},
                                         {899, "Quit without saving the last step"},
                                         {900, "Quit without another checkpoint"}}) {
    say([checkpoint = checkpoint](Snapshot& s) { s.last_checkpoint_step = checkpoint; });
    EXPECT_TRUE(sees(std::string("says:") + text)) << text;
  }
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
  EXPECT_TRUE(sees("says:Collecting values for the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving = {901, 100 << 20, 400 << 20}; });
  EXPECT_TRUE(sees("says:Writing the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving.done = s.saving.total; });
  EXPECT_TRUE(sees("says:Flushing to disk: the checkpoint of step 901 ..."));
  say([](Snapshot& s) { s.saving = {}; });
  EXPECT_TRUE(sees("says:Closing the run in the database ..."));
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

// Exports and changes of the store while the window is asked to close.
class ClosingWithWork : public Clicked {
 protected:
  ~ClosingWithWork() override {
    ui().exports.writer.reset();
    ui().store.reset();  // before the folder goes
  }
  // An export that waits until the gate is opened.
  void begin_export() {
    ui().exports.writer = std::make_shared<FileWriter>();
    ui().exports.writer->write({folder_.file("charts"),
                                {{"slow", "csv",
                                  [this] {
                                    began_.set_value();
                                    gate_.get_future().wait();
                                    return std::string("late");
                                  }},
                                 {"next", "csv", [] { return std::string("x"); }}}});
    began_.get_future().wait();
  }
  std::string make_store() {
    std::string id;
    {
      RunWriter writer(folder_.store(), test::start_of("kept"), test::quick());
      writer.metrics(1, {{"train_loss", 1.0}});
      id = writer.run_id();
      writer.finish("finished");
    }
    ui().store = std::make_unique<StoreClient>(folder_.store(), std::function<void()>{});
    ui().store_path = folder_.store();
    EXPECT_TRUE(stage_.until([&] { return ui().runs->loaded; }));
    return id;
  }
  std::string name_of(const std::string& run) const { return RunReader(folder_.store()).run(run).name; }
  bool exists(const std::string& file) const { return std::filesystem::exists(folder_.file(file)); }

  test::Folder folder_;
  std::promise<void> began_, gate_;
};

TEST_F(ClosingWithWork, WaitsForExportsAndSaysSo) {
  begin_export();
  ui().close_requested = true;
  EXPECT_TRUE(sees("says:Writing 2 files to " + folder_.file("charts")));
  EXPECT_TRUE(find("Keep the window open"));
  EXPECT_FALSE(ui().quit);
  gate_.set_value();
  ASSERT_TRUE(stage_.until([&] { return ui().quit; }));
  EXPECT_FALSE(ui().closing.at_once);
  EXPECT_TRUE(exists("charts/slow.csv") && exists("charts/next.csv"));
}

TEST_F(ClosingWithWork, CanBeTakenBackAndTheWorkGoesOn) {
  begin_export();
  ui().close_requested = true;
  click("Keep the window open");
  EXPECT_FALSE(ui().close_requested);
  gate_.set_value();
  ASSERT_TRUE(stage_.until([&] { return exists("charts/next.csv"); }));
  EXPECT_FALSE(ui().quit);
}

TEST_F(ClosingWithWork, GivesExportsUpWithoutUnfinishedFiles) {
  begin_export();
  ui().close_requested = true;
  click("quit-give-up");
  EXPECT_FALSE(ui().quit) << "the file that is being written stops first";
  EXPECT_FALSE(sees("quit-now"));
  for (int i = 0; i < 11 * 60; ++i) frame();  // eleven seconds of the null backend's clock
  EXPECT_TRUE(find("quit-now")) << "where it does not stop";
  gate_.set_value();
  ASSERT_TRUE(stage_.until([&] { return ui().quit; }));
  EXPECT_FALSE(ui().closing.at_once);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.file("charts")));
}

TEST_F(ClosingWithWork, EndsAtOnceWhereTheWorkDoesNotStop) {
  begin_export();
  ui().close_requested = true;
  click("quit-give-up");
  ui().closing.insisted = true;
  click("quit-now");
  EXPECT_TRUE(ui().quit && ui().closing.at_once);
  gate_.set_value();
}

TEST_F(ClosingWithWork, WaitsForChangesOfTheStore) {
  const std::string run = make_store();
  auto other = std::make_unique<Database>(folder_.store(), Database::Mode::write);
  auto writing = std::make_unique<Transaction>(*other);
  rename_run(ui(), run, "renamed");
  ui().close_requested = true;
  EXPECT_TRUE(sees("says:Renaming 1 run"));
  EXPECT_FALSE(ui().quit);
  writing.reset();
  ASSERT_TRUE(stage_.until([&] { return ui().quit; }));
  EXPECT_EQ(name_of(run), "renamed");
}

TEST_F(ClosingWithWork, DropsChangesThatDidNotBegin) {
  const std::string run = make_store();
  auto other = std::make_unique<Database>(folder_.store(), Database::Mode::write);
  auto writing = std::make_unique<Transaction>(*other);
  rename_run(ui(), run, "renamed");
  purge_runs(ui(), {run});
  ui().close_requested = true;
  EXPECT_TRUE(sees("says:Permanently deleting 1 run"));
  click("quit-give-up");
  writing.reset();
  ASSERT_TRUE(stage_.until([&] { return ui().quit; }));
  EXPECT_NE(name_of(run), "") << "it is still there";
}

TEST_F(ClosingWithWork, ChangesAfterThoseThatWereGivenUpAreDone) {
  const std::string run = make_store();
  auto other = std::make_unique<Database>(folder_.store(), Database::Mode::write);
  auto writing = std::make_unique<Transaction>(*other);
  do {  // until the one that is given up had begun
    rename_run(ui(), run, "first");
    ui().store->give_up_changes();
  } while (!ui().store->changed().empty());
  writing.reset();
  ASSERT_TRUE(stage_.until([&] { return ui().store->unfinished().empty(); }));
  rename_run(ui(), run, "second");
  ASSERT_TRUE(stage_.until([&] { return ui().store->unfinished().empty(); }));
  EXPECT_EQ(name_of(run), "second");
}

TEST_F(ClosingWithWork, ShowsAnErrorThatComesMeanwhile) {
  make_store();
  rename_run(ui(), "r-none", "renamed");
  ui().close_requested = true;
  ASSERT_TRUE(stage_.until([&] { return !ui().closing.problems.empty(); }));
  EXPECT_TRUE(sees("Quit anyway"));
  EXPECT_TRUE(find("says:" + ui().closing.problems[0]));
  EXPECT_FALSE(ui().quit);
  click("Quit anyway");
  EXPECT_TRUE(ui().quit);
}

TEST_F(ClosingWithWork, AChangeOfAStoreThatIsLeftIsDone) {
  const std::string run = make_store();
  auto other = std::make_unique<Database>(folder_.store(), Database::Mode::write);
  auto writing = std::make_unique<Transaction>(*other);
  rename_run(ui(), run, "renamed");
  set_notes(ui(), run, "noted");
  open_store(ui(), folder_.file("other.db"));
  writing.reset();
  ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded && ui().store->unfinished().empty(); }));
  EXPECT_EQ(RunReader(folder_.store()).run(run).notes, "noted");
}

TEST_F(ClosingWithWork, WaitsForStepsThatAreComputedAgain) {
  ui().reproducing = std::make_unique<Reproducing>(
      ReproduceQuestion{.store = folder_.file("none.db"), .run = "r-1", .name = "demo", .first = 1, .last = 5}, std::function<void()>{});
  EXPECT_EQ(unfinished_work(ui()).at(0).find("Computing steps 1 to 5 of demo again"), 0u);
  ui().close_requested = true;
  ASSERT_TRUE(stage_.until([&] { return ui().quit; }));
  EXPECT_FALSE(ui().reproducing) << "its answer was taken";
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
