// The cursor over the past of a run: what it shows, how it moves, and what it leaves alone.
#include "app/studio/shown_run/timeline.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/runs/run_fields.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class TimelineTest : public StoreStage {
 protected:
  TimelineTest() { ui().store_path = store_; }
  int64_t step() { return ui().snapshot().step; }

  // A run that was made up: a tenth of a second a step, a checkpoint every 20, an edit in force from step 31 on.
  std::string write_run(int64_t steps, bool checkpoints = false) {  // with files, empty ones
    RunWriter writer(store_, a_start("made up"));
    if (steps > 0) writer.event(0, "start", "{}");
    for (int64_t step = 1; step <= steps; ++step) {
      writer.metrics(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"entries", 1000}, {"step_ms", 100}});
      if (step == 30) writer.event(31, "edit", R"({"path": "train.lr_rank", "value": "0.5"})");
      if (step % 20 == 0) writer.event(step, "checkpoint", "{}");
      if (step % 20 == 0 && checkpoints) {
        const std::string file = (folder_ / ("step-" + std::to_string(step))).string();
        std::ofstream{file};
        writer.checkpoint(step, file, 0, "periodic");
      }
    }
    writer.finish("stopped", "");
    writer.flush();
    return writer.run_id();
  }

  void open(const std::string& id, int64_t at = -1) {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    open_run(ui(), id, at);
    ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
    ASSERT_TRUE(ui().stored) << (ui().toasts.empty() ? "" : ui().toasts[0].text);
    stage_->frames();
  }

  void press(ImGuiKey key, ImGuiKey modifier = ImGuiKey_None) {
    ImGuiIO& io = ImGui::GetIO();
    if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, true);
    io.AddKeyEvent(key, true);
    stage_->frames(2);
    io.AddKeyEvent(key, false);
    if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, false);
    stage_->frames(2);
  }

  static bool sign_is_shown() {
    const ImGuiWindow* sign = ImGui::FindWindowByName("##replay-sign");
    return sign && sign->WasActive;
  }
};

TEST_F(TimelineTest, AStoredRunOpensAtItsEndAndTheCursorShowsItsPast) {
  open(write_run(100));
  EXPECT_FALSE(ui().replaying());
  EXPECT_FALSE(sign_is_shown());
  EXPECT_EQ(step(), 100);
  seek(ui(), 42);
  stage_->frames();
  EXPECT_TRUE(ui().replaying());
  EXPECT_TRUE(sign_is_shown());
  EXPECT_EQ(step(), 42);
  EXPECT_DOUBLE_EQ(ui().snapshot().last.results.ce, 1.0 / 42);
  EXPECT_EQ(ui().shown().metric("train_loss").size(), 100u) << "curves keep their length";
  EXPECT_EQ(ui().plots.replay, 42);
  EXPECT_EQ(ui().config().train.lr_rank, 0.5) << "settings are those of the step";
  seek(ui(), 30);
  EXPECT_NE(ui().config().train.lr_rank, 0.5);
  seek(ui(), -7);
  EXPECT_EQ(step(), 1);
  seek(ui(), 1000);
  EXPECT_FALSE(ui().replaying());
  EXPECT_EQ(step(), 100);
}

// Which lanes there are changes with the height of the window; each mark has one in every height.
TEST_F(TimelineTest, EveryMarkHasALaneInEveryHeight) {
  open(write_run(100));
  for (float height = 500; height <= 900; height += 10) {
    stage_->resize({1000, height});
    EXPECT_NO_THROW(stage_->frames(2)) << height;
  }
}

TEST_F(TimelineTest, OpensAtAStep) {
  open(write_run(100), 12);
  EXPECT_EQ(step(), 12);
  EXPECT_TRUE(ui().replaying());
}

TEST_F(TimelineTest, Keys) {
  open(write_run(100));
  ImGui::FocusWindow(ImGui::FindWindowByName("##timeline"));
  stage_->frames(2);
  press(ImGuiKey_LeftArrow);
  EXPECT_EQ(step(), 99);
  press(ImGuiKey_LeftArrow, ImGuiMod_Shift);
  EXPECT_EQ(step(), 89);
  press(ImGuiKey_RightArrow);
  EXPECT_EQ(step(), 90);
  press(ImGuiKey_LeftBracket);
  EXPECT_EQ(step(), 80);
  press(ImGuiKey_RightBracket);
  press(ImGuiKey_LeftBracket);
  EXPECT_EQ(step(), 80) << "from the checkpoint at the end";
  seek(ui(), 35);
  press(ImGuiKey_LeftArrow, ImGuiMod_Ctrl);
  EXPECT_EQ(step(), 31) << "the edit";
  press(ImGuiKey_RightArrow, ImGuiMod_Ctrl);
  EXPECT_EQ(step(), 40);
  press(ImGuiKey_Home);
  EXPECT_EQ(step(), 1);
  press(ImGuiKey_Period);
  EXPECT_EQ(ui().timeline.speed, 2);
  press(ImGuiKey_Comma);
  press(ImGuiKey_Comma);
  EXPECT_EQ(ui().timeline.speed, 0.5);
  press(ImGuiKey_1);
  EXPECT_EQ(ui().timeline.speed, 1);
  press(ImGuiKey_Space);
  EXPECT_TRUE(ui().timeline.playing);
  press(ImGuiKey_Space);
  EXPECT_FALSE(ui().timeline.playing);
  press(ImGuiKey_L);
  EXPECT_FALSE(ui().replaying());
  press(ImGuiKey_Home);
  press(ImGuiKey_End);
  EXPECT_FALSE(ui().replaying());
  // With another panel in front the arrows are that panel's.
  seek(ui(), 50);
  ImGui::FocusWindow(ImGui::FindWindowByName("Metrics###metrics"));
  stage_->frames(2);
  press(ImGuiKey_LeftArrow);
  EXPECT_EQ(step(), 50);
}

TEST_F(TimelineTest, PlaysAtTheSpeedOfTheTraining) {
  open(write_run(100));
  toggle_play(ui());  // from the start, since it stands at the end
  EXPECT_EQ(step(), 1);
  EXPECT_TRUE(ui().busy()) << "the window draws on its own";
  for (int i = 0; i < 10; ++i) advance_timeline(ui(), 0.1001);
  EXPECT_EQ(step(), 11);
  ui().timeline.speed = 4;
  for (int i = 0; i < 10; ++i) advance_timeline(ui(), 0.1001);
  EXPECT_EQ(step(), 51);
  stage_->frames(60);  // the clock of a frame: a second at 60 a second
  EXPECT_NEAR(static_cast<double>(step()), 91, 2);
  ui().timeline.loop = Loop::all;
  stage_->frames(30);
  EXPECT_TRUE(ui().timeline.playing);
  EXPECT_LT(step(), 30) << "it began again";
  ui().timeline.loop = Loop::off;
  ui().timeline.speed = 64;
  stage_->frames(60);
  EXPECT_FALSE(ui().timeline.playing);
  EXPECT_FALSE(ui().replaying());
}

TEST_F(TimelineTest, TheMouseDragsTheCursor) {
  open(write_run(100));
  const ImGuiWindow* bar = ImGui::FindWindowByName("##timeline");
  const float y = bar->Pos.y + bar->Size.y / 2;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(bar->Pos.x + bar->Size.x * 0.9f, y);
  stage_->frames(2);
  io.AddMouseButtonEvent(0, true);
  stage_->frames(2);
  const int64_t right = step();
  EXPECT_TRUE(ui().replaying());
  io.AddMousePosEvent(bar->Pos.x + bar->Size.x * 0.6f, y);
  stage_->frames(2);
  EXPECT_LT(step(), right);
  io.AddMouseButtonEvent(0, false);
  stage_->frames(2);
  const int64_t there = step();
  io.AddMousePosEvent(bar->Pos.x + bar->Size.x * 0.9f, y);
  stage_->frames(2);
  EXPECT_EQ(step(), there);
}

// A line of the timeline, and places on it; the lanes begin somewhere in its left half.
struct LanesOnScreen {
  float left, right, y;
  float at(double share) const { return left + (right - left) * static_cast<float>(share); }
};
LanesOnScreen lanes_on_screen() {
  const ImGuiWindow* bar = ImGui::FindWindowByName("##timeline");
  return {bar->Pos.x, bar->Pos.x + bar->Size.x, bar->Pos.y + em(3)};
}

TEST_F(TimelineTest, ShiftAndDragSelectSteps) {
  open(write_run(100));
  const LanesOnScreen bar = lanes_on_screen();
  ImGuiIO& io = ImGui::GetIO();
  const auto drag = [&](double from, double to) {
    io.AddKeyEvent(ImGuiMod_Shift, true);
    io.AddMousePosEvent(bar.at(from), bar.y);
    stage_->frames(2);
    io.AddMouseButtonEvent(0, true);
    stage_->frames(2);
    io.AddMousePosEvent(bar.at(to), bar.y);
    stage_->frames(2);
    io.AddMouseButtonEvent(0, false);
    stage_->frames(2);
    io.AddKeyEvent(ImGuiMod_Shift, false);
    stage_->frames(2);
  };
  drag(0.9, 0.7);  // to the left as well
  const StepRange wide = ui().timeline.selection;
  ASSERT_TRUE(wide.any());
  EXPECT_LT(wide.first, wide.last);
  EXPECT_GT(wide.first, 1);
  EXPECT_LT(wide.last, 100);
  EXPECT_FALSE(ui().replaying()) << "the cursor stays";
  EXPECT_EQ(ui().plots.selection_low, wide.first) << "the curves show it";
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  drag(0.7, 0.8);
  EXPECT_EQ(ui().timeline.selection.first, wide.first);
  EXPECT_LT(ui().timeline.selection.last, wide.last);
  drag(0.8, 0.8);  // a click
  EXPECT_FALSE(ui().timeline.selection.any());
  stage_->frames();
  EXPECT_EQ(ui().plots.selection_low, -1);
}

TEST_F(TimelineTest, KeysSelectAsWell) {
  open(write_run(100));
  ImGui::FocusWindow(ImGui::FindWindowByName("##timeline"));
  stage_->frames(2);
  seek(ui(), 30);
  press(ImGuiKey_I);
  EXPECT_EQ(ui().timeline.selection.first, 30);
  EXPECT_EQ(ui().timeline.selection.last, 100);
  seek(ui(), 50);
  press(ImGuiKey_O);
  EXPECT_EQ(ui().timeline.selection.first, 30);
  EXPECT_EQ(ui().timeline.selection.last, 50);
  seek(ui(), 20);
  press(ImGuiKey_O);  // before where it began: from the first step
  EXPECT_EQ(ui().timeline.selection.first, 1);
  EXPECT_EQ(ui().timeline.selection.last, 20);
  press(ImGuiKey_R);
  press(ImGuiKey_R);
  EXPECT_EQ(ui().timeline.loop, Loop::selection);
  press(ImGuiKey_Escape);
  EXPECT_FALSE(ui().timeline.selection.any());
  EXPECT_EQ(ui().timeline.loop, Loop::off);
}

TEST_F(TimelineTest, TheLoopPlaysTheSelectionOnly) {
  open(write_run(100));
  next_loop(ui());
  EXPECT_EQ(ui().timeline.loop, Loop::all);
  next_loop(ui());
  EXPECT_EQ(ui().timeline.loop, Loop::off) << "nothing is selected";
  select_steps(ui(), 60, 41);
  EXPECT_EQ(ui().timeline.selection.first, 41);
  EXPECT_EQ(ui().timeline.selection.last, 60);
  next_loop(ui());
  next_loop(ui());
  ASSERT_EQ(ui().timeline.loop, Loop::selection);
  toggle_play(ui());
  EXPECT_EQ(step(), 41);
  bool again = false;
  for (int i = 0; i < 50; ++i) {
    const int64_t before = step();
    advance_timeline(ui(), 0.2001);
    EXPECT_GE(step(), 41);
    EXPECT_LE(step(), 60);
    again |= step() < before;
  }
  EXPECT_TRUE(again) << "it began again";
  seek(ui(), 5);
  advance_timeline(ui(), 0.01);
  EXPECT_EQ(step(), 41) << "from outside it goes to the selection";
  drop_selection(ui());
  EXPECT_EQ(ui().timeline.loop, Loop::off);
  // To the end of the run: the newest step belongs to it.
  select_steps(ui(), 90, 1000);
  EXPECT_EQ(ui().timeline.selection.last, 100);
  ui().timeline.loop = Loop::selection;
  ui().timeline.playing = false;
  seek(ui(), 99);
  toggle_play(ui());
  advance_timeline(ui(), 0.2001);
  EXPECT_EQ(step(), 90);
  EXPECT_TRUE(ui().timeline.playing);
}

// A window that drew nothing for a while plays on from where it was.
TEST_F(TimelineTest, ALongFrameDoesNotJump) {
  open(write_run(100));
  seek(ui(), 10);
  toggle_play(ui());
  ASSERT_TRUE(ui().timeline.playing);
  advance_timeline(ui(), 5);
  EXPECT_GE(step(), 11);
  EXPECT_LE(step(), 13) << "a quarter of a second at most";
}

TEST_F(TimelineTest, WhatHappenedInTheSelection) {
  open(write_run(100));
  select_steps(ui(), 21, 60);
  stage_->frames();
  const RangeSummary& all = selection_summary(ui());
  EXPECT_EQ(all.steps, 40);
  EXPECT_NEAR(all.seconds, 3.9, 1e-9) << "39 steps after the first one, a tenth of a second each";
  EXPECT_DOUBLE_EQ(all.loss_first, 1.0 / 21);
  EXPECT_DOUBLE_EQ(all.loss_last, 1.0 / 60);
  EXPECT_DOUBLE_EQ(all.loss_high, 1.0 / 21);
  EXPECT_DOUBLE_EQ(all.loss_low, 1.0 / 60);
  double sum = 0;
  for (int i = 21; i <= 60; ++i) sum += 1.0 / i;
  EXPECT_NEAR(all.loss_mean, sum / 40, 1e-12);
  EXPECT_EQ(all.checkpoints, 2);  // 40 and 60
  EXPECT_EQ(all.edits, 1);
  EXPECT_EQ(all.alerts, 0);
  select_steps(ui(), 32, 39);
  EXPECT_EQ(selection_summary(ui()).checkpoints, 0);
  EXPECT_EQ(selection_summary(ui()).edits, 0);
}

TEST_F(TimelineTest, TheAxisOfTime) {
  open(write_run(100));
  ImGui::FocusWindow(ImGui::FindWindowByName("##timeline"));
  stage_->frames(2);
  press(ImGuiKey_T);
  EXPECT_TRUE(ui().timeline.by_time);
  const LanesOnScreen bar = lanes_on_screen();
  ImGui::GetIO().AddMousePosEvent(bar.at(0.8), bar.y);
  stage_->frames(2);
  ImGui::GetIO().AddMouseButtonEvent(0, true);
  stage_->frames(2);
  const int64_t by_time = step();
  EXPECT_TRUE(ui().replaying());
  ImGui::GetIO().AddMouseButtonEvent(0, false);
  stage_->frames(2);
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  press(ImGuiKey_T);
  stage_->frames(2);
  ImGui::GetIO().AddMouseButtonEvent(0, true);
  stage_->frames(2);
  EXPECT_NEAR(static_cast<double>(step()), static_cast<double>(by_time), 1.5) << "all steps took as long";
  ImGui::GetIO().AddMouseButtonEvent(0, false);
  stage_->frames(2);
}

// A run that is shown is resumed by another process from an earlier step: what was taken back is not shown as its newest.
TEST_F(TimelineTest, AStoredRunThatWasResumedElsewhereIsReadAgain) {
  const std::string id = write_run(100);
  open(id);
  seek(ui(), 90);
  select_steps(ui(), 30, 80);
  {
    RunWriter writer(store_, id);
    writer.truncate_after(40);
    writer.event(40, "resume", R"({"from_step": 40})");
    for (int64_t at = 41; at <= 50; ++at) writer.metrics(at, {{"train_loss", 7}, {"step_ms", 100}});
    RunSummary summary;
    summary.step = 50;
    writer.summary(summary);
    writer.finish("stopped", "");
    ASSERT_TRUE(writer.flush());
  }
  ui().store->refresh(0);
  ASSERT_TRUE(until([&] { return ui().shown().snapshot->step == 50; })) << "the old steps stay in front";
  EXPECT_EQ(ui().shown().metric("train_loss").size(), 50u);
  EXPECT_EQ(ui().shown().metric("train_loss").last(), 7);
  EXPECT_FALSE(ui().replaying()) << "its step is gone, so the newest one is shown";
  EXPECT_EQ(ui().timeline.selection.first, 30);
  EXPECT_EQ(ui().timeline.selection.last, 50);
  seek(ui(), 45);
  stage_->frames(2);
  EXPECT_EQ(ui().snapshot().last.results.ce, 7);
  const RunView* same = &ui().shown();
  stage_->frames(30);
  EXPECT_EQ(&ui().shown(), same) << "nothing changed, nothing is read";
}

TEST_F(TimelineTest, ARunThatIsReadAgainPlaysOnWhereItWas) {
  const std::string id = write_run(100);
  open(id);
  seek(ui(), 20);
  toggle_play(ui());
  ASSERT_TRUE(ui().timeline.playing);
  const auto again = [&] {
    auto replay = std::make_shared<Replay>(store_, id);
    take_again(ui(), view_of(*replay, store_), replay);
  };
  again();
  EXPECT_TRUE(ui().timeline.playing);
  EXPECT_EQ(step(), 20);
  follow_run(ui());
  again();
  EXPECT_FALSE(ui().timeline.playing || ui().replaying());
}

// One whose settings cannot be read says so, and is drawn.
TEST_F(TimelineTest, ARunWithSettingsThatCannotBeRead) {
  RunStart start;
  start.name = "of another time";
  start.config = R"({"train": {"batch": "many"}})";
  RunWriter writer(store_, start);
  writer.event(0, "start", "{}");
  for (int64_t at = 1; at <= 20; ++at) writer.metrics(at, {{"train_loss", 1}});
  writer.rank(0, "a", 1, 30);
  writer.finish("stopped", "");
  ASSERT_TRUE(writer.flush());
  open(writer.run_id());
  EXPECT_NE(ui().shown().config_problem, "");
  for (const char* panel : {"metrics", "tt", "ranks", "memory", "profile", "controls"}) {
    ui().front_panel = panel;
    stage_->frames();
    EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{}) << panel;
  }
  seek(ui(), 7);
  EXPECT_EQ(step(), 7);
  EXPECT_FALSE(fork_shown(ui()));
  resume_run(ui(), writer.run_id());
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_FALSE(ui().live) << "nothing was started with settings that are not its own";
  ASSERT_EQ(ui().toasts.size(), 2u);
}

TEST_F(TimelineTest, ForksFromTheCursor) {
  const std::string id = write_run(100);
  open(id);
  seek(ui(), 42);
  ASSERT_TRUE(fork_shown(ui()));
  EXPECT_EQ(stage_->started.fork_run, id);
  EXPECT_EQ(stage_->started.at_step, 42);
  EXPECT_EQ(stage_->started.config.train.lr_rank, 0.5);
  EXPECT_FALSE(ui().replaying()) << "the new run is followed";
  stage_->frames();
}

// The run that is shown stays when another store is opened: it goes on where it is kept.
TEST_F(TimelineTest, ARunGoesOnInItsOwnStore) {
  const std::string id = write_run(100), other = store_ + ".other";
  open(id);
  open_store(ui(), other);
  seek(ui(), 42);
  EXPECT_EQ(step(), 42) << "its past is read from there too";
  ASSERT_TRUE(fork_shown(ui()));
  EXPECT_EQ(stage_->started.fork_run, id);
  EXPECT_EQ(stage_->started.store, store_);
  EXPECT_EQ(ui().shown().store, store_);
  ui().show_stored = true;
  resume_shown(ui());
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_EQ(stage_->started.resume_run, id);
  EXPECT_EQ(stage_->started.store, store_);
  ASSERT_TRUE(start_preset(ui(), "demo"));
  EXPECT_EQ(stage_->started.store, other) << "a new run goes into the store that is open";
}

// From the past of a run that trains: the checkpoint before the cursor, and steps that are computed again meanwhile.
TEST_F(TimelineTest, TheWaysOnFromThePastOfARunThatTrains) {
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  ui().open_session = start_session;
  ui().sets = {"train.threads=1",           "train.steps=60",          "train.eval_every=10", "method.comera.late_after=20",
               "train.checkpoint_every=15", "train.max_steps_per_s=0", "train.batch=16",      "data.validation_rows=64"};
  EXPECT_NE(action_of(ui(), "run.fork").why_not, "");
  ASSERT_TRUE(start_preset(ui(), "demo"));
  ui().live->step(38);
  ASSERT_TRUE(until([&] { return step() == 38 && ui().live->view().snapshot->phase == Phase::paused; }));
  const std::string id = ui().live->run();
  EXPECT_NE(action_of(ui(), "run.fork").why_not, "") << "its newest step may not be stored yet";
  EXPECT_EQ(action_of(ui(), "run.fork_checkpoint").why_not, "");
  ASSERT_TRUE(until([&] {
    if (ui().load_request == 0 && step() != 21) seek(ui(), 21);
    return step() == 21;
  }));
  EXPECT_EQ(action_of(ui(), "run.fork").title, "Fork from step 21");
  std::vector<NamedItem> items;
  collect_items(&items);
  stage_->frames(2);
  collect_items(nullptr);
  for (const char* name : {"follow", "fork"})
    EXPECT_TRUE(std::any_of(items.begin(), items.end(), [&](const NamedItem& item) { return item.name == name; })) << name;
  EXPECT_EQ(action_of(ui(), "run.fork_checkpoint").title, "Fork from checkpoint 15");
  EXPECT_EQ(action_of(ui(), "run.reproduce").title, "Reproduce steps 16 to 21");

  action_of(ui(), "run.reproduce").act(ui());
  ASSERT_TRUE(ui().reproducing);
  EXPECT_TRUE(ui().busy()) << "how far it is is drawn";
  EXPECT_NE(action_of(ui(), "run.reproduce").why_not, "") << "one at a time";
  stage_->frames(2);
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  ASSERT_TRUE(until([&] { return !ui().reproducing; }));
  EXPECT_EQ(ui().live->view().snapshot->phase, Phase::paused) << "the run that trains is left alone";
  ASSERT_FALSE(ui().toasts.empty());
  EXPECT_EQ(ui().toasts.back().level, Level::good);
  EXPECT_NE(ui().toasts.back().text.find("steps 16 to 21 reproduced: identical"), std::string::npos) << ui().toasts.back().text;
  select_steps(ui(), 10, 15);
  EXPECT_EQ(action_of(ui(), "run.reproduce").title, "Reproduce steps 10 to 15");

  ASSERT_TRUE(fork_shown_checkpoint(ui()));
  ASSERT_EQ(ui().ending.size(), 1u) << "it writes its checkpoint";
  ASSERT_FALSE(ui().toasts.empty());
  ASSERT_EQ(ui().toasts.back().offers.size(), 1u);
  const std::function<void(UiState&)> back = ui().toasts.back().offers[0].act;
  ASSERT_TRUE(until([&] { return ui().ending.empty() && ui().live->view().ended(); }));
  EXPECT_EQ(ui().live->view().marks[0].text, "forked from " + id + " at step 15");
  EXPECT_EQ(ui().live->view().snapshot->step, 60);
  back(ui());
  ASSERT_TRUE(until([&] { return ui().live->run() == id && ui().live->view().ended(); }));
  EXPECT_EQ(ui().live->view().snapshot->phase, Phase::finished) << ui().live->view().snapshot->message;
  EXPECT_EQ(ui().live->view().metric("train_loss").size(), 60u);
}

TEST_F(TimelineTest, WhatIsNotTheSameWhenComputedAgainIsTold) {
  open(write_run(100));  // its losses are made up
  EXPECT_EQ(action_of(ui(), "run.fork_checkpoint").why_not,
            "There is no checkpoint before this step; a fork from the step itself computes the steps again");
  reproduce_whole(ui());
  ASSERT_TRUE(until([&] { return !ui().reproducing; }));
  ASSERT_FALSE(ui().toasts.empty());
  EXPECT_EQ(ui().toasts.back().level, Level::warning);
  EXPECT_NE(ui().toasts.back().text.find("different. At step 1 "), std::string::npos) << ui().toasts.back().text;
  EXPECT_FALSE(ui().window_log.empty()) << "it stays in the log";
}

// Lanes are there for what they have, so far apart that their names can be read.
TEST_F(TimelineTest, LanesThatAreEmptyAreFolded) {
  std::vector<NamedItem> items;
  collect_items(&items);
  const auto lanes = [&] {
    stage_->frames(3);
    items.clear();
    stage_->frames(1);
    std::vector<std::string> names;
    for (const NamedItem& item : items)
      if (item.name.starts_with("lane:")) {
        names.push_back(item.name.substr(5));
        EXPECT_GE(item.high.y - item.low.y, 1.1f * Stage::line()) << item.name;
      }
    return names;
  };
  open(write_run(100));
  EXPECT_EQ(lanes(), (std::vector<std::string>{"Loss", "Checkpoints", "Edits"}));
  open(write_run(10));
  EXPECT_EQ(lanes(), (std::vector<std::string>{"Loss"}));
  collect_items(nullptr);
}

// What is told of a place under the mouse is told of the cursor under the keyboard; both can be copied.
TEST_F(TimelineTest, WhatIsToldOfAPlaceCanBeCopied) {
  open(write_run(100));
  std::vector<NamedItem> items;
  collect_items(&items);
  const auto shown = [&](const std::string& name) -> std::optional<NamedItem> {
    for (int i = 0; i < 20; ++i) {
      items.clear();
      stage_->frames(1);
    }
    const auto found = std::find_if(items.begin(), items.end(), [&](const NamedItem& item) { return item.name.starts_with(name); });
    return found == items.end() ? std::nullopt : std::optional(*found);
  };
  const auto click = [&](const std::string& name, int button, float at = 0.5f) {
    const std::optional<NamedItem> item = shown(name);
    ASSERT_TRUE(item) << name;
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(item->low.x + (item->high.x - item->low.x) * at, (item->low.y + item->high.y) / 2);
    stage_->frames(2);
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(button, down);
      stage_->frames(2);
    }
  };
  click("lanes", ImGuiMouseButton_Right);
  EXPECT_FALSE(ui().replaying()) << "a right click goes nowhere";
  click("copy:Copy tooltip", ImGuiMouseButton_Left);
  const std::string text = ImGui::GetClipboardText();
  EXPECT_TRUE(text.starts_with("step ")) << text;
  EXPECT_NE(text.find(" of training"), std::string::npos) << text;

  ImGui::GetIO().AddMousePosEvent(-FLT_MAX, -FLT_MAX);
  seek(ui(), 40);
  ImGui::FocusWindow(ImGui::FindWindowByName("##timeline"));
  stage_->frames(2);
  std::optional<NamedItem> tip;
  for (int i = 0; i < 40 && !tip; ++i) {
    press(ImGuiKey_Tab);
    tip = shown("tip:step 40,");
  }
  ASSERT_TRUE(tip);
  EXPECT_NE(tip->name.find("40  checkpoint written"), std::string::npos) << tip->name;
  press(ImGuiKey_Enter);
  EXPECT_EQ(step(), 40) << "a key says nothing of a place";
  press(ImGuiKey_Menu);
  EXPECT_TRUE(shown("copy:Copy tooltip"));
  collect_items(nullptr);
}

// A run that is finished is offered more steps by the first button, as many as its name says.
TEST_F(TimelineTest, TheFirstButtonExtendsAFinishedRun) {
  RunWriter writer(store_, a_start("finished", 2468));
  writer.metrics(1, {{"train_loss", 1}});
  writer.finish("finished", "");
  writer.flush();
  const std::string id = writer.run_id();
  open(id);
  EXPECT_FALSE(ui().resumable());
  EXPECT_EQ(offered_steps(ui()), 1200) << "half of them, in two digits";
  press(ImGuiKey_F5);
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_->started.resume_run, id);
  EXPECT_EQ(stage_->started.extend, 1200);
}

TEST_F(TimelineTest, AStoppedRunIsNotExtendedButResumed) {
  open(write_run(10));
  EXPECT_TRUE(ui().resumable());
  EXPECT_EQ(offered_steps(ui()), 0);
}

// Its data could not be read: it resumes when they are back.
TEST_F(TimelineTest, AFailedRunIsResumedFromACheckpointOfItsLastStep) {
  stage_->begin_run(Phase::failed, 10);
  stage_->say([&](Snapshot& s) { s.run = "r-000001", s.last_checkpoint_step = 8; });
  ui().store_path = store_;
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  stage_->frames();
  EXPECT_FALSE(ui().resumable()) << "that would compute two steps again: a question for the person";
  stage_->say([&](Snapshot& s) { s.last_checkpoint_step = 10; });
  stage_->frames();
  EXPECT_TRUE(ui().resumable());
  RunRow row;
  row.status = "failed";
  EXPECT_FALSE(can_resume(row)) << "it never began";
  row.summary.step = 10;
  EXPECT_TRUE(can_resume(row));
  row.message = std::string(kOutOfMemory);
  EXPECT_FALSE(can_resume(row)) << "it would fail again";
}

// While the past is shown, the controls offer the way on from its checkpoint.
TEST_F(TimelineTest, TheControlsForkFromTheCheckpointBefore) {
  const std::string id = write_run(100, true);
  open(id);
  std::vector<NamedItem> items;
  collect_items(&items);
  const auto button = [&]() -> std::optional<NamedItem> {
    stage_->frames(3);
    items.clear();
    stage_->frames(1);
    const auto found = std::find_if(items.begin(), items.end(), [](const NamedItem& item) { return item.name == "fork-checkpoint"; });
    return found == items.end() ? std::nullopt : std::optional(*found);
  };
  EXPECT_FALSE(button()) << "not at the newest step";
  seek(ui(), 10);
  EXPECT_TRUE(button()) << "before the first checkpoint it forks from the step itself";
  seek(ui(), 57);
  const auto at = button();
  ASSERT_TRUE(at);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((at->low.x + at->high.x) / 2, (at->low.y + at->high.y) / 2);
  stage_->frames(2);
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(0, down);
    stage_->frames(2);
  }
  collect_items(nullptr);
  EXPECT_EQ(stage_->started.fork_run, id);
  EXPECT_EQ(stage_->started.at_step, 40);
}

// From the list of runs: at its first step, with the panels that move with the cursor.
TEST_F(TimelineTest, ARunOfTheListIsReplayed) {
  const std::string id = write_run(100);
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  ASSERT_TRUE(until([&] { return ui().runs->loaded; }));
  replay_run(ui(), id);
  ASSERT_TRUE(until([&] { return ui().replaying(); }));
  EXPECT_EQ(step(), 1);
  EXPECT_STREQ(chosen_layout(ui()), "replay");
}

TEST_F(TimelineTest, TheKeyOfTheFirstButtonResumesAStoppedRun) {
  const std::string id = write_run(50);
  open(id);
  press(ImGuiKey_F5);
  ASSERT_TRUE(until([&] { return !stage_->started.resume_run.empty(); }));
  EXPECT_EQ(stage_->started.resume_run, id);
  EXPECT_TRUE(ui().live);
}

TEST_F(TimelineTest, ARunWithoutSteps) {
  open(write_run(0));
  EXPECT_STREQ(no_past(ui()), "There are no past steps yet");
  toggle_play(ui());
  seek(ui(), 5);
  move_cursor(ui(), -1);
  seek_mark(ui(), -1);
  stage_->frames();
  EXPECT_FALSE(ui().replaying());
  EXPECT_FALSE(ui().timeline.playing);
}

TEST_F(TimelineTest, FitsSmallAndLargeWindows) {
  const std::string id = write_run(100);
  for (const auto& [size, scale] :
       {std::pair(ImVec2(960, 600), 1.0f), std::pair(ImVec2(1920, 1080), 1.0f), std::pair(ImVec2(1920, 1200), 2.0f)}) {
    stage_.reset();
    stage_ = std::make_unique<Stage>(size, scale, ThemeKind::light);
    ui().store_path = store_;
    open(id);
    for (const int64_t at : {int64_t{100}, int64_t{50}}) {
      seek(ui(), at);
      stage_->frames();
      EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
      const ImGuiWindow* bar = ImGui::FindWindowByName("##timeline");
      EXPECT_TRUE(bar->WasActive);
      EXPECT_LE(bar->Pos.y + bar->Size.y, size.y);
    }
    const ImGuiWindow* sign = ImGui::FindWindowByName("##replay-sign");
    EXPECT_GE(sign->Pos.x, 0);
    EXPECT_LE(sign->Pos.x + sign->Size.x, size.x);
  }
}

// From the list of runs, the form and the comparison as well; where these are low, in one line.
TEST_F(TimelineTest, MovesFromEveryPage) {
  open(write_run(100));
  for (const ImVec2 size : {ImVec2(1600, 900), ImVec2(960, 600)})
    for (const char* page : {"start", "new", "compare"}) {
      const std::string where = std::string(page) + " at " + std::to_string(size.x);
      stage_->resize(size);
      show_layout(ui(), page);
      stage_->frames(6);
      if (page == std::string_view("new")) {  // what the form looks up in the background would move its layout later
        ASSERT_TRUE(stage_->until([&] { return ui().form.all_looked(); })) << where;
        stage_->frames(2);
      }
      const ImGuiWindow* bar = ImGui::FindWindowByName("##timeline");
      ASSERT_TRUE(bar && bar->WasActive) << where;
      EXPECT_EQ(bar->Size.y < 3 * Stage::line(), size.y < 700) << where << ": a line, or all of it";
      ImGuiIO& io = ImGui::GetIO();
      io.AddMousePosEvent(bar->Pos.x + bar->Size.x * 0.7f, bar->Pos.y + bar->Size.y / 2);
      stage_->frames(2);
      for (const bool down : {true, false}) {
        io.AddMouseButtonEvent(0, down);
        stage_->frames(2);
      }
      EXPECT_TRUE(ui().replaying()) << where;
      const int64_t there = step();
      EXPECT_GT(there, 1) << where;
      EXPECT_LT(there, 100) << where;
      press(ImGuiKey_LeftArrow);  // the bar has the keyboard
      EXPECT_EQ(step(), there - 1) << where;
      EXPECT_EQ(ui().layout, page);
      EXPECT_FALSE(sign_is_shown()) << where << ": no value of the past is there";
      EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{}) << where;
      follow_run(ui());
      stage_->frames(2);
    }
}

TEST_F(TimelineTest, NoRunAndNoStore) {
  ui().layout = "train";
  stage_->frames();
  toggle_play(ui());
  seek(ui(), 3);
  EXPECT_FALSE(ui().replaying());
  stage_->begin_run(Phase::running);  // not stored: its past is drawn, but not kept
  stage_->frames();
  EXPECT_NE(no_past(ui()), nullptr);
  seek(ui(), 3);
  EXPECT_FALSE(ui().replaying());
}

// A real run, paused at its step 38: the window showed its steps 7, 20, 21 and 38.
class PastOfALiveRun : public TimelineTest {
 protected:
  void SetUp() override {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().open_session = start_session;
    ui().sets = {"train.threads=1",           "train.steps=60",          "train.eval_every=10", "method.comera.late_after=20",
                 "train.checkpoint_every=15", "train.max_steps_per_s=0", "train.batch=16",      "data.validation_rows=64"};
    ASSERT_TRUE(start_preset(ui(), "demo"));
    for (const int64_t wanted : {7, 20, 21, 38}) {
      ui().live->step(wanted - live().step);
      ASSERT_TRUE(until([&] { return live().phase == Phase::paused && live().step == wanted; })) << live().message;
      shown_.push_back(ui().live->view().snapshot);
    }
  }
  const Snapshot& live() { return *ui().live->view().snapshot; }
  // The store is written a little behind the training.
  bool goes_to(int64_t wanted) {
    return until([&] {
      if (ui().load_request == 0 && step() != wanted) seek(ui(), wanted);
      return step() == wanted;
    });
  }
  // Ends the run with a checkpoint; its id.
  std::string stop() {
    ui().live->stop(true);
    EXPECT_TRUE(until([&] { return ui().live->view().ended() && ui().live->ended(); }));
    return live().run;
  }
  void expect_shown(const Snapshot& live) {
    const Snapshot& past = ui().snapshot();
    EXPECT_EQ(past.step, live.step);
    EXPECT_EQ(past.last.results.ce, live.last.results.ce);
    EXPECT_EQ(past.eval.accuracy, live.eval.accuracy);
    EXPECT_EQ(past.late, live.late);
    EXPECT_EQ(past.target_entries, live.target_entries);
    EXPECT_EQ(past.size.entries, live.size.entries);
    EXPECT_EQ(past.size.held_entries, live.size.held_entries);
    EXPECT_EQ(past.memory_now.bytes, live.memory_now.bytes);
    EXPECT_EQ(past.memory_planned.bytes, live.memory_planned.bytes);
    ASSERT_EQ(past.ranks.size(), live.ranks.size());
    for (size_t i = 0; i < live.ranks.size(); ++i) {
      EXPECT_EQ(past.ranks[i].live, live.ranks[i].live);
      EXPECT_EQ(past.ranks[i].held, live.ranks[i].held);
      EXPECT_EQ(past.ranks[i].initial, live.ranks[i].initial);
    }
  }
  std::vector<std::shared_ptr<const Snapshot>> shown_;
};

TEST_F(PastOfALiveRun, IsWhatWasShown) {
  ASSERT_TRUE(goes_to(21));
  for (size_t i = 0; i < 3; ++i) {
    seek(ui(), shown_[i]->step);
    stage_->frames(2);
    expect_shown(*shown_[i]);
  }
  EXPECT_TRUE(sign_is_shown());
  EXPECT_TRUE(ui().commanded()) << "training can be paused and stopped from here";
  EXPECT_FALSE(ui().editable()) << "the past cannot be changed";
}

TEST_F(PastOfALiveRun, StaysWhileTrainingGoesOnBehind) {
  ASSERT_TRUE(goes_to(21));
  ui().live->step(4);
  ASSERT_TRUE(until([&] { return live().step == 42; }));
  EXPECT_EQ(step(), 21);
  expect_shown(*shown_[2]);
  follow_run(ui());
  EXPECT_EQ(step(), 42);
}

// Both views were filled by the same records.
TEST_F(PastOfALiveRun, IsStoredAsItWasShown) {
  ui().store->load(stop());
  ASSERT_TRUE(until([&] { return ui().store->loaded() && ui().store->loaded()->view->snapshot->phase == Phase::stopped; }));
  const std::shared_ptr<const LoadedRun> loaded = ui().store->loaded();
  const RunView &stored = *loaded->view, &shown = ui().live->view();
  ASSERT_EQ(stored.metrics.size(), shown.metrics.size());
  for (const auto& [name, curve] : shown.metrics) {
    EXPECT_EQ(stored.metric(name).x(), curve.x()) << name;
    EXPECT_EQ(stored.metric(name).y(), curve.y()) << name;
  }
  EXPECT_EQ(stored.metric("train_loss").size(), 38u);
  ASSERT_EQ(stored.drops.size(), shown.drops.size());
  for (size_t i = 0; i < shown.drops.size(); ++i) {
    EXPECT_EQ(stored.drops[i].step, shown.drops[i].step);
    EXPECT_EQ(stored.drops[i].layer, shown.drops[i].layer);
    EXPECT_EQ(stored.drops[i].to, shown.drops[i].to);
  }
  for (size_t i = 0; i < shown.memory.size(); ++i) EXPECT_EQ(stored.memory[i].y(), shown.memory[i].y());
  EXPECT_EQ(stored.rank_drops.y(), shown.rank_drops.y());
  EXPECT_GT(shown.late_entries, 0);
  EXPECT_EQ(stored.late_entries, shown.late_entries);
  ASSERT_EQ(stored.marks.size(), shown.marks.size());
  for (size_t i = 0; i < shown.marks.size(); ++i) {
    EXPECT_EQ(stored.marks[i].step, shown.marks[i].step);
    EXPECT_EQ(stored.marks[i].kind, shown.marks[i].kind);
    EXPECT_EQ(stored.marks[i].text, shown.marks[i].text);
  }
}

TEST_F(PastOfALiveRun, IsWhereAForkBegins) {
  const std::string id = stop();
  ASSERT_TRUE(goes_to(21));
  ASSERT_TRUE(fork_shown(ui()));
  ASSERT_TRUE(until([&] { return live().run != id && ui().live->view().ended(); }));
  const RunView& child = ui().live->view();
  EXPECT_EQ(child.snapshot->phase, Phase::finished) << child.snapshot->message;
  EXPECT_EQ(first_step(child), 22);
  EXPECT_EQ(child.snapshot->step, 60);
  ASSERT_FALSE(child.marks.empty());
  EXPECT_EQ(child.marks[0].kind, Mark::segment);
  EXPECT_EQ(child.marks[0].text, "forked from " + id + " at step 21");
}

// What was read of it, and what is trained now.
TEST_F(PastOfALiveRun, IsWholeAfterAResume) {
  const double late_entries = ui().live->view().late_entries;
  const std::string id = stop();
  resume_run(ui(), id);
  ASSERT_TRUE(until([&] { return live().run == id && live().step == 60 && ui().live->view().ended(); })) << live().message;
  const RunView& resumed = ui().live->view();
  EXPECT_EQ(resumed.snapshot->phase, Phase::finished) << resumed.snapshot->message;
  EXPECT_EQ(resumed.metric("train_loss").size(), 60u);
  EXPECT_EQ(std::count_if(resumed.marks.begin(), resumed.marks.end(), [](const Mark& mark) { return mark.kind == Mark::segment; }), 2);
  EXPECT_EQ(resumed.late_entries, late_entries);
  ASSERT_TRUE(goes_to(21));
  expect_shown(*shown_[2]);
}

// A run that this window trained and stopped is resumed like one that was opened, unless another program has trained it on.
TEST_F(TimelineTest, ARunThatWasStoppedHereIsResumed) {
  RunWriter writer(store_, a_start("stopped", 1000), test::quick());
  const auto train = [&](int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step) writer.metrics(step, {{"train_loss", 1}});
    RunSummary summary;
    summary.step = to;
    writer.summary(summary);
    ASSERT_TRUE(writer.flush());
    ui().store->refresh(0);
  };
  ui().store_path = store_;
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  train(1, 10);
  stage_->begin_run(Phase::stopped, 10);
  stage_->say([&](Snapshot& s) { s.run = writer.run_id(); });
  ASSERT_TRUE(until([&] { return find_row(*ui().runs, writer.run_id()) && ui().shown().snapshot->run == writer.run_id(); }));
  EXPECT_TRUE(ui().resumable()) << "the list may be older than its end";
  EXPECT_EQ(action_of(ui(), "run.toggle").title, "Resume the shown run");
  train(11, 20);
  ASSERT_TRUE(until([&] { return !ui().resumable(); })) << "another window trains it";
  writer.finish("stopped", "");
  ASSERT_TRUE(writer.flush());
  ui().store->refresh(0);
  ASSERT_TRUE(until([&] { return ui().resumable(); }));
  press(ImGuiKey_F5);
  ASSERT_TRUE(until([&] { return stage_->started.resume_run == writer.run_id(); }));
}

}  // namespace
}  // namespace comera::studio
