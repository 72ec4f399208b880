// What becomes of a session's snapshots and of the commands of the window.
#include "app/studio/actions.h"
#include "core/base/error.h"
#include "core/store/run_writer.h"
#include "tests/session/support.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"
#include "tests/train/tight_device.h"

namespace comera::studio {
namespace {

constexpr const char* kLiveTarget = "method.comera.target";

void answer(Script& script, Ticket ticket, const std::string& refusal = "") {
  Snapshot next = *script.snapshot;
  next.last_ticket = ticket;
  next.last_refusal = refusal;
  next.last_ticket_step = 777;  // earlier than what the window sees of it
  ++next.step;
  script.snapshot = std::make_shared<const Snapshot>(next);
}

TEST(LiveRun, AnEditIsPendingUntilItsTicketIsDone) {
  Stage stage;
  stage.begin_run(Phase::running);
  LiveRun& run = *stage.ui.live;
  run.edit(kLiveTarget, "0.3");
  ASSERT_EQ(stage.script->posted.size(), 1u);
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::pending);
  run.poll();
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::pending);
  EXPECT_NE(run.view().config.method.comera.target, 0.3);
  answer(*stage.script, 1);
  stage.script->records.events.push_back({0, 777, "edit", 0, R"({"path": "method.comera.target", "value": "0.3"})"});
  run.poll();
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::applied);
  EXPECT_EQ(run.edits().at(kLiveTarget).step, 777);
  EXPECT_NE(run.view().config_at(776).method.comera.target, 0.3);
  EXPECT_EQ(run.view().config_at(777).method.comera.target, 0.3);
  EXPECT_EQ(run.view().config.method.comera.target, 0.3);
  stage.frames();  // and it can be drawn
}

TEST(LiveRun, ARefusedEditSaysWhyAndChangesNothing) {
  Stage stage;
  stage.begin_run(Phase::running);
  LiveRun& run = *stage.ui.live;
  const double before = run.view().config.method.comera.target;
  run.edit(kLiveTarget, "3");
  answer(*stage.script, 1, "cannot change method.comera.target: must be 0..1");
  run.poll();
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::refused);
  EXPECT_EQ(run.edits().at(kLiveTarget).reason, "cannot change method.comera.target: must be 0..1");
  EXPECT_EQ(run.view().config.method.comera.target, before);
  EXPECT_EQ(run.view().log.back().level, Level::warning);
  stage.frames();
}

// The real core: somebody is there to say how it goes on.
TEST(LiveRun, WhereRanksFindNoRoomTheEditIsRefusedAndTheRunWaits) {
  test::Folder folder;
  const auto room = std::make_shared<test::Room>();
  SessionStart start = start_in(folder, 100'000);
  start.config.method.comera.late_after = start.config.method.comera.prune_every = 0;
  start.paused = true;
  start.open = [room](const std::string&, int) { return std::make_unique<test::TightDevice>(room); };
  LiveRun run(start_session(start), start.config);
  const auto reaches = [&](const std::function<bool(const Snapshot&)>& condition) {
    return test::wait_for(
        [&] {
          run.poll();
          return condition(*run.view().snapshot);
        },
        60);
  };
  const auto waits = [&](const Snapshot& s) { return s.phase == Phase::paused && !run.pending(); };
  ASSERT_TRUE(reaches(waits));
  room->fill();
  run.resume();
  ASSERT_TRUE(reaches([](const Snapshot& s) { return s.step > 3; }));
  for (const char* cap : {"20", "30"}) {  // a slider that goes on
    run.edit("rank.cap.fc0.1", cap);
    ASSERT_TRUE(reaches(waits));
    EXPECT_EQ(run.edits().at("rank.cap.fc0.1").stage, EditState::refused);
    EXPECT_NE(run.edits().at("rank.cap.fc0.1").reason.find("no room for the ranks"), std::string::npos);
  }
  const std::vector<LogLine> alerts = run.take_alerts();
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_NE(alerts[0].text.find("MiB are free"), std::string::npos) << alerts[0].text;
  EXPECT_TRUE(run.view().snapshot->ranks[0].caps[0] == 0) << "nothing is changed";
  const int64_t at = run.view().snapshot->step;
  run.resume();
  EXPECT_TRUE(reaches([&](const Snapshot& s) { return s.step > at + 3; }));
  run.stop(false);
  EXPECT_TRUE(reaches([&](const Snapshot&) { return run.ended(); }));
}

TEST(LiveRun, ASliderThatMovesFastPostsItsLastValue) {
  Stage stage;
  stage.begin_run(Phase::running);
  LiveRun& run = *stage.ui.live;
  for (const char* value : {"0.9", "0.8", "0.7", "0.6"}) run.edit(kLiveTarget, value);
  EXPECT_EQ(stage.script->posted.size(), 1u);  // the others wait for its answer
  answer(*stage.script, 1);
  run.poll();
  ASSERT_EQ(stage.script->posted.size(), 2u);
  EXPECT_EQ(std::get<EditCommand>(stage.script->posted[1]).value, "0.6");
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::pending);
  answer(*stage.script, 2);
  run.poll();
  EXPECT_EQ(run.edits().at(kLiveTarget).stage, EditState::applied);
  EXPECT_EQ(run.edits().at(kLiveTarget).value, "0.6");
}

TEST(LiveRun, StopGoesOutAtOnce) {
  Stage stage;
  stage.begin_run(Phase::running);
  LiveRun& run = *stage.ui.live;
  run.edit(kLiveTarget, "0.9");
  run.edit(kLiveTarget, "0.8");
  run.stop(true);
  EXPECT_TRUE(std::holds_alternative<StopCommand>(stage.script->posted.back()));
  EXPECT_TRUE(run.stopping());
}

TEST(LiveRun, WhatHappensIsLoggedAndMarked) {
  Stage stage;
  stage.begin_run(Phase::running);  // steps 1..900, late after 500
  const RunView& view = stage.ui.live->view();
  EXPECT_TRUE(std::any_of(view.marks.begin(), view.marks.end(), [](const Mark& mark) { return mark.kind == Mark::late_stage; }));
  EXPECT_TRUE(std::any_of(view.marks.begin(), view.marks.end(),
                          [](const Mark& mark) { return mark.kind == Mark::checkpoint && mark.step == 600; }));
  EXPECT_EQ(view.metric("train_loss").size(), 900u);
  EXPECT_EQ(view.metric("val_loss").size(), 9u);
  EXPECT_EQ(view.late_entries, 950'000);
  EXPECT_FALSE(view.memory[0].empty());
  Snapshot fewer = *stage.script->snapshot;
  fewer.store_problem = "the disk is full";
  fewer.step += 10;
  stage.script->snapshot = std::make_shared<const Snapshot>(fewer);
  stage.script->records.ranks.push_back({905, fewer.ranks[0].name, 1, 20});
  stage.ui.live->poll();
  ASSERT_FALSE(view.drops.empty());
  EXPECT_EQ(view.drops.back().step, 905);
  EXPECT_EQ(view.drops.back().layer, fewer.ranks[0].name);
  EXPECT_EQ(view.drops.back().from, 30);
  EXPECT_EQ(view.drops.back().to, 20);
  EXPECT_EQ(view.rank_drops.last(), 10);
  EXPECT_EQ(view.log.back().text, "the disk is full");
  const std::string& fell = view.log[view.log.size() - 2].text;
  EXPECT_EQ(fell.substr(0, fell.rfind(' ')), fewer.ranks[0].name + " bond 1: 30 -> 20, sum");
}

TEST(Actions, PauseAndResume) {
  Stage stage;
  stage.begin_run(Phase::running);
  toggle_pause(stage.ui);
  EXPECT_TRUE(std::holds_alternative<PauseCommand>(stage.script->posted.back()));
  EXPECT_TRUE(stage.ui.live->waits<PauseCommand>());
  Snapshot paused = *stage.script->snapshot;
  paused.phase = Phase::paused;
  paused.last_ticket = 1;
  stage.script->snapshot = std::make_shared<const Snapshot>(paused);
  stage.frames();
  EXPECT_FALSE(stage.ui.live->waits<PauseCommand>());
  toggle_pause(stage.ui);
  EXPECT_TRUE(std::holds_alternative<ResumeCommand>(stage.script->posted.back()));
}

TEST(Actions, ANewRunLetsTheOldOneEndInTheBackground) {
  Stage stage;
  stage.begin_run(Phase::running);
  const std::shared_ptr<Script> old = stage.script;
  stage.script = std::make_shared<Script>();
  ASSERT_TRUE(start_preset(stage.ui, "demo"));
  EXPECT_TRUE(std::holds_alternative<StopCommand>(old->posted.back()));
  ASSERT_EQ(stage.ui.ending.size(), 1u);
  EXPECT_TRUE(stage.ui.training());
  stage.frames();
  EXPECT_EQ(stage.ui.ending.size(), 1u);
  old->ended = true;
  stage.frames();
  EXPECT_TRUE(stage.ui.ending.empty());
}

TEST(Actions, ABadPresetIsAMessageNotACrash) {
  Stage stage;
  EXPECT_FALSE(start_preset(stage.ui, "no-such-preset"));
  ASSERT_EQ(stage.ui.toasts.size(), 1u);
  EXPECT_EQ(stage.ui.toasts[0].level, Level::error);
  stage.frames();
}

// The real engine behind the real window code: the demo's first steps arrive as curves.
TEST(Actions, TheDemoTrains) {
  Stage stage;
  stage.ui.open_session = start_session;
  stage.ui.sets = {"train.threads=1", "train.max_steps_per_s=0"};
  ASSERT_TRUE(start_preset(stage.ui, "demo"));
  stage.ui.live->step(20);
  const RunView& view = stage.ui.live->view();
  ASSERT_TRUE(stage.until([&] { return view.snapshot->phase == Phase::paused || view.ended(); }));
  ASSERT_FALSE(view.ended()) << view.snapshot->message;
  stage.frames();
  EXPECT_EQ(view.snapshot->step, 20);
  EXPECT_EQ(view.metric("train_loss").size(), 20u);
  EXPECT_EQ(view.snapshot->ranks.size(), 3u);
  stage.ui.live->edit(kLiveTarget, "0.25");
  ASSERT_TRUE(stage.until([&] { return stage.ui.live->edits().at(kLiveTarget).stage != EditState::pending; }));
  EXPECT_EQ(stage.ui.live->edits().at(kLiveTarget).stage, EditState::applied);
  EXPECT_EQ(view.config.method.comera.target, 0.25);
  stage.ui.live->stop(false);
}

TEST(LiveRun, ItsRunIsNotResumedASecondTime) {
  Stage stage;
  stage.ui.store = std::make_unique<StoreClient>("/nowhere/runs.db", std::function<void()>{});
  stage.begin_run(Phase::running);
  stage.ui.layout = "start";
  resume_run(stage.ui, "r-test01");
  EXPECT_EQ(stage.ui.layout, "train") << "it is shown";
  EXPECT_EQ(stage.ui.load_request, 0u);
  stage.ui.ending.push_back(std::move(stage.ui.live));
  resume_run(stage.ui, "r-test01");
  EXPECT_EQ(stage.ui.load_request, 0u) << "its checkpoint is still being written";
  EXPECT_EQ(stage.ui.toasts.size(), 1u);
  resume_run(stage.ui, "r-other1");
  EXPECT_NE(stage.ui.load_request, 0u);
}

// What a session left out, since the window did not ask for too long, comes out of the store; also what that has only later.
TEST(LiveRun, WhatWasLeftOutIsReadFromTheStore) {
  const test::Folder folder;
  RunWriter writer(folder.store(), test::start_of("watched"), test::quick());
  const auto write = [&](int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      writer.metrics(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"step_ms", 10.0}});
      if (step % 25 == 0) writer.metrics(step, {{"val_loss", static_cast<double>(step)}});
    }
    writer.flush();
  };
  auto script = std::make_shared<Script>();
  Snapshot snapshot = a_snapshot(Phase::running, 100);
  snapshot.run = writer.run_id();
  script->snapshot = std::make_shared<const Snapshot>(snapshot);
  LiveRun run(std::make_unique<FakeLink>(script), RunConfig{}, nullptr, folder.store());
  const auto tell = [&](int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step)
      script->records.add(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"step_ms", 10.0}}, static_cast<double>(step));
  };
  write(1, 50);
  tell(1, 20);
  run.poll();
  script->records.left_out = {21, 80};
  tell(81, 100);
  const auto has = [&](size_t points) {
    return test::wait_for(
        [&] {
          run.poll();
          return run.view().metric("train_loss").size() == points;
        },
        60);
  };
  ASSERT_TRUE(has(70)) << "as far as it is stored";
  EXPECT_EQ(run.view().metric("train_loss").x()[49], 50);
  EXPECT_EQ(run.view().metric("train_loss").x()[50], 81);
  write(51, 100);
  ASSERT_TRUE(has(100));
  const Curve& loss = run.view().metric("train_loss");
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(loss.x()[i], static_cast<double>(i + 1));
    EXPECT_EQ(loss.y()[i], 1.0 / static_cast<double>(i + 1));
  }
  EXPECT_EQ(run.view().metric("val_loss").size(), 3u) << "of steps 25, 50 and 75";
  EXPECT_EQ(run.view().trained_ms.curve().last(), 1000) << "the time of all steps";
  EXPECT_EQ(run.view().wall.size(), 100u);
  script->records.left_out = {101, 110};  // of a run that is not stored
  LiveRun lost(std::make_unique<FakeLink>(script), RunConfig{});
  lost.poll();
  ASSERT_FALSE(lost.view().log.empty());
  EXPECT_NE(lost.view().log.back().text.find("steps 101 to 110 are missing in the curves"), std::string::npos);
  writer.finish("finished");
}

// The window never waits for a thread of a run that was replaced.
TEST(LiveRun, OneThatReadsTheStoreIsKeptUntilItHasRead) {
  const test::Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), test::start_of("kept"), test::quick());
    id = writer.run_id();
    for (int64_t step = 1; step <= 20; ++step) writer.metrics(step, {{"train_loss", 1.0}});
    writer.finish("stopped");
  }
  auto other = std::make_unique<Database>(folder.store(), Database::Mode::write);
  other->text("PRAGMA locking_mode = EXCLUSIVE");
  other->run("BEGIN EXCLUSIVE; UPDATE runs SET notes = 'x'");  // nobody can read
  Stage stage;
  stage.script->snapshot = [&] {
    Snapshot s = a_snapshot(Phase::stopped, 20);
    s.run = id;
    return std::make_shared<const Snapshot>(s);
  }();
  stage.script->records.left_out = {1, 20};
  stage.script->ended = true;
  stage.ui.ending.push_back(std::make_unique<LiveRun>(std::make_unique<FakeLink>(stage.script), RunConfig{}, nullptr, folder.store()));
  stage.frames(2);
  EXPECT_EQ(stage.ui.ending.size(), 1u) << "its destructor would wait";
  other.reset();
  EXPECT_TRUE(stage.until([&] { return stage.ui.ending.empty(); }));
}

// A session says its id only after it has computed the past again.
TEST(LiveRun, ARunThatGoesOnHasItsIdAtOnce) {
  auto base = std::make_shared<RunView>();
  Snapshot stored;
  stored.run = "r-test07";
  base->snapshot = std::make_shared<const Snapshot>(stored);
  const LiveRun run(std::make_unique<FakeLink>(std::make_shared<Script>()), RunConfig{}, base);
  EXPECT_EQ(run.view().snapshot->run, "");
  EXPECT_EQ(run.run(), "r-test07");
}

}  // namespace
}  // namespace comera::studio
