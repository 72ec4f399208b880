// What is posted to a run is done at a step boundary and answered; what is given with its start is done at its step.
#include "core/session/session.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/session/reproduce.h"
#include "core/train/checkpoint.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;
using test::has;

TEST(Session, RunsToTheNextEventAndTellsWhereItPauses) {
  Folder folder;
  SessionStart start = start_in(folder);  // a checkpoint after step 25, the late stage after step 30
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{.to_event = true});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 0 && s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->step, 25);
  EXPECT_EQ(session.latest()->last_checkpoint_step, 25);
  EXPECT_GT(session.latest()->last_checkpoint_at, 1e9);
  EXPECT_GT(session.latest()->saved_at, 1e9);
  EXPECT_FALSE(session.latest()->pause_at_event);
  session.post(StepCommand{.to_event = true});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 25 && s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->step, 31) << "the first step of the late stage";
  EXPECT_TRUE(session.latest()->late);
  session.post(StepCommand{30'000});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.pause_at == 30'031 || s.step >= 80; }));
}

// Its device is not here: what it computed goes on, on another one.
TEST(Session, GoesOnOnAnotherDeviceThanItsConfigSays) {
  Folder folder;
  SessionStart start = start_in(folder, 20);
  start.config.train.device = "cuda:63";
  {
    Session session(start);
    session.join();
    EXPECT_EQ(session.latest()->phase, Phase::failed);
    EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::device));
  }
  start.device = "cpu";
  Session session(start);
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished);
  EXPECT_EQ(session.latest()->device.substr(0, 3), "CPU");
}

TEST(Session, CommandsAreDoneAtABoundaryAndAnswered) {
  Folder folder;
  SessionStart start = start_in(folder, 100'000);
  start.config.train.checkpoint_every = 0;
  start.config.method.comera.late_after = start.config.method.comera.prune_every = 0;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 5; }));
  ASSERT_TRUE(until_done(session, session.post(PauseCommand{})));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const int64_t at = session.latest()->step;
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.lr_rank", "0.001"})));
  EXPECT_EQ(session.latest()->last_refusal, "");
  EXPECT_EQ(session.latest()->last_ticket_step, at + 1) << "the first step under it";
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.batch", "8"})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {"train.batch"})) << "fixed at the start";
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "7e7"})));
  EXPECT_NE(session.latest()->last_refusal, "") << "out of range";
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"stage", "late"})));
  EXPECT_EQ(session.latest()->last_refusal, "");
  EXPECT_EQ(session.latest()->step, at) << "paused";
  session.post(StepCommand{3});
  ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == at + 3 && s.phase == Phase::paused; }));
  EXPECT_TRUE(session.latest()->late);
  EXPECT_EQ(session.latest()->last.learning_rate[1], 0.001);
  EXPECT_NEAR(session.latest()->eta_s * session.latest()->steps_per_s, static_cast<double>(100'000 - at - 3), 0.01)
      << "for the steps that are left";
  ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{})));
  EXPECT_EQ(session.latest()->last_checkpoint_step, at + 3);
  EXPECT_EQ(session.latest()->saving.step, -1) << "it is written";
  session.post(ResumeCommand{});
  ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step > at + 5; }));
  session.post(StopCommand{false});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::stopped);
  EXPECT_EQ(session.latest()->last_checkpoint_step, at + 3) << "stopped without a checkpoint";
  const RunReader reader(folder.store());
  std::vector<std::pair<int64_t, std::string>> events;
  for (const EventRow& event : reader.events(session.latest()->run)) events.emplace_back(event.step, event.kind);
  EXPECT_EQ(events,
            (std::vector<std::pair<int64_t, std::string>>{{0, "start"}, {at + 1, "edit"}, {at + 1, "stage"}, {at + 3, "checkpoint"}}));
}

// The way back from the late stage is an edit as well: in the log, made again by whoever computes the run again, and none of it
// is left where it was taken back before its step.
TEST(Session, TheStageIsChangedThereAndBack) {
  Folder folder;
  SessionStart start = start_in(folder, 70);
  start.config.method.comera.late_after = 0;
  start.config.train.checkpoint_every = 0;
  start.paused = true;
  {
    Session session(start);
    const auto to = [&](int64_t step) {
      session.post(StepCommand{step - session.latest()->step});
      ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == step && s.phase == Phase::paused; }));
    };
    const auto ask = [&](const char* stage) {
      ASSERT_TRUE(until_done(session, session.post(EditCommand{"stage", stage})));
      EXPECT_EQ(session.latest()->last_refusal, "");
    };
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    to(10);
    ask("late");
    EXPECT_FALSE(session.latest()->late) << "from the next step on";
    to(30);
    EXPECT_TRUE(session.latest()->late);
    ask("early");
    // Written between what is asked for and its step, which a kill would go on from.
    ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{})));
    ask("late");
    to(40);
    EXPECT_TRUE(session.latest()->late) << "it was taken back";
    ask("early");
    to(50);
    EXPECT_FALSE(session.latest()->late);
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"stage", "middle"})));
    EXPECT_NE(session.latest()->last_refusal, "");
    session.post(StopCommand{false});
    ASSERT_TRUE(session.wait(60));
  }
  const auto switches = [&] {
    std::vector<std::pair<int64_t, std::string>> out;
    for (const EventRow& event : RunReader(folder.store()).events(load_stored_run(folder.store(), "small").id))
      if (event.kind == "stage") {
        const Json body = parse_json(event.body, "an event");
        out.emplace_back(event.step, body.at("stage").get<std::string>() + (body.contains("stays") ? " stays" : ""));
      }
    return out;
  };
  const std::vector<std::pair<int64_t, std::string>> expected{{11, "late"}, {31, "late stays"}, {41, "early"}};
  EXPECT_EQ(switches(), expected);
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
  const Series before = RunReader(folder.store()).metric(load_stored_run(folder.store(), "small").id, "train_objective");
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "small";
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_FALSE(session.latest()->late);
  const Series after = RunReader(folder.store()).metric(session.latest()->run, "train_objective");
  ASSERT_EQ(after.steps.size(), 70u);
  EXPECT_TRUE(std::equal(before.values.begin(), before.values.end(), after.values.begin())) << "goes on from the checkpoint of step 30";
  EXPECT_EQ(switches(), expected);
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
  SessionStart given = start_in(folder, 40);
  given.config.name = "given";
  given.config.method.comera.late_after = 0;
  given.changes = {parse_change("stage=late", 10), parse_change("stage=early", 20)};
  Session scheduled(given);
  ASSERT_TRUE(scheduled.wait(60));
  ASSERT_EQ(scheduled.latest()->phase, Phase::finished) << scheduled.latest()->message;
  const Series targets = RunReader(folder.store()).metric(scheduled.latest()->run, "target_entries");
  for (size_t i = 0; i < targets.steps.size(); ++i)
    EXPECT_EQ(targets.values[i] > 0, targets.steps[i] >= 10 && targets.steps[i] < 20) << targets.steps[i];
  EXPECT_TRUE(reproduce_run(folder.store(), "given").identical);
}

// Resumed from before an older change: what is changed by hand now is not set back by it.
TEST(Session, ALiveEditOverrulesAnOlderOneFurtherOn) {
  Folder folder;
  SessionStart start = start_in(folder, 90);
  start.paused = true;
  {
    Session session(start);
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    session.post(StepCommand{60});
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 60 && s.phase == Phase::paused; }));
    session.post(EditCommand{"train.lr_rank", "0.01"});
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.lr_core", "0.001"})));
    session.post(StepCommand{10});
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 70 && s.phase == Phase::paused; }));
    session.post(StopCommand{false});
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "small";
  again.paused = true;
  Session session(again);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  ASSERT_EQ(session.latest()->step, 50) << "the last checkpoint";
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.lr_rank", "0.02"})));
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_EQ(session.latest()->last.learning_rate[1], 0.02);
  EXPECT_EQ(session.latest()->last.learning_rate[0], 0.001) << "the other one is made again";
  std::vector<std::pair<int64_t, std::string>> edits;
  for (const EventRow& event : RunReader(folder.store()).events(session.latest()->run))
    if (event.kind == "edit") edits.emplace_back(event.step, event.body);
  ASSERT_EQ(edits.size(), 2u);
  std::sort(edits.begin(), edits.end());
  EXPECT_EQ(edits[0].first, 51);
  EXPECT_TRUE(has(edits[0].second, {"lr_rank", "0.02"}));
  EXPECT_EQ(edits[1].first, 61);
  EXPECT_TRUE(has(edits[1].second, {"lr_core", "0.001"}));
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

// What the command line gives with --set and --edit: made at its step, in the log from the start, so that neither a stop
// nor a fork nor computing it again loses it.
TEST(Session, ChangesGivenAtTheStartAreMadeAtTheirSteps) {
  Folder folder;
  SessionStart whole = start_in(folder, 60);
  whole.config.method.comera.late_after = 0;
  whole.sets = {"rank.cap.fc0.1=5", "rank.weight.fc1=0"};
  whole.changes = {parse_change("train.lr_core=0.001", 30), parse_change("stage=late", 40), parse_change("rank.cap.fc0.2=3", 35)};
  SessionStart cut = whole;
  cut.config.name = "cut";
  cut.config.train.checkpoint_every = 10;
  whole.config.name = "whole";
  const auto finish = [&](SessionStart start) {
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    return session.latest();
  };
  const auto done = finish(whole);
  EXPECT_TRUE(done->late);
  ASSERT_EQ(done->ranks[0].caps, (std::vector<int64_t>{5, 3, 0, 0, 0}));
  EXPECT_EQ(done->ranks[1].weight, 0);
  EXPECT_EQ(done->last.learning_rate[0], 0.001);
  {
    cut.paused = true;
    Session session(cut);
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    session.post(StepCommand{25});
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 25 && s.phase == Phase::paused; }));
    EXPECT_EQ(session.latest()->ranks[0].caps, (std::vector<int64_t>{5, 0, 0, 0, 0})) << "the others are still to come";
    session.post(StopCommand{false});
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "cut";
  finish(again);
  const StoredRun a = load_stored_run(folder.store(), "whole"), b = load_stored_run(folder.store(), "cut");
  EXPECT_EQ(first_file_difference(a.checkpoints.at(60), b.checkpoints.at(60)), "");
  std::vector<int64_t> steps;
  for (const ScheduledChange& change : a.changes) steps.push_back(change.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 1, 30, 35, 40}));
  EXPECT_TRUE(reproduce_run(folder.store(), "whole").identical);
  EXPECT_TRUE(reproduce_run(folder.store(), "cut").identical);
  SessionStart fork;
  fork.store = folder.store();
  fork.fork_run = "whole";
  fork.at_step = 20;
  fork.sets = {"name=forked", "train.batch=16", "rank.cap.fc0.1=2"};
  fork.changes = {parse_change("rank.cap.fc0.1=null", 50)};
  const auto forked = finish(fork);
  EXPECT_FALSE(forked->late) << "what the parent changed later is not of the fork";
  EXPECT_EQ(forked->ranks[0].caps, (std::vector<int64_t>{0, 0, 0, 0, 0}));
  EXPECT_TRUE(reproduce_run(folder.store(), "forked").identical);
  // What cannot be done is said before anything is stored.
  for (const char* bad : {"rank.cap.fc0.9=3", "rank.weight.fc7=0", "train.batch=3", "train.lr_coer=1"}) {
    SessionStart wrong = start_in(folder, 60);
    wrong.changes = {parse_change(bad, 10)};
    Session session(wrong);
    ASSERT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::usage)) << bad;
    EXPECT_EQ(session.latest()->run, "");
  }
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 3u);
  EXPECT_THROW(parse_change("stage=middle", 3), Error);
  EXPECT_THROW(parse_change("train.lr_core", 3), Error);
}

// The window: looks, drains and moves sliders as fast as it can while the run trains.
TEST(Session, ManyEditsWhileItTrains) {
  Folder folder;
  Session session(start_in(folder, 100'000));
  Records records;
  Ticket last = 0;
  int64_t looks = 0, posted = 0;
  while (posted < 200 || session.latest()->last_ticket < last) {
    ASSERT_FALSE(session.wait(0)) << session.latest()->message;
    const auto snapshot = session.latest();
    ASSERT_LE(snapshot->last_ticket, last);
    records.append(session.drain());
    if (++looks % 4 == 0 && snapshot->phase == Phase::running && posted < 200) {
      last = session.post(EditCommand{"method.comera.target", std::to_string(0.2 + 0.001 * static_cast<double>(posted % 500))});
      ++posted;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  session.post(StopCommand{});
  ASSERT_TRUE(session.wait(60));
  records.append(session.drain());
  ASSERT_EQ(session.latest()->phase, Phase::stopped) << session.latest()->message;
  const auto rows = by_step(records.metrics);
  ASSERT_EQ(static_cast<int64_t>(rows.size()), session.latest()->step);
  EXPECT_EQ(rows.begin()->first, 1);
  int64_t edits = 0;
  for (const EventRow& event : records.events) edits += event.kind == "edit";
  EXPECT_EQ(edits, posted);
}

TEST(Session, EndsWithItsOwnerAndKeepsACheckpoint) {
  Folder folder;
  std::string run;
  {
    Session session(start_in(folder, 100'000));
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 3; }));
    run = session.latest()->run;
  }
  const RunReader reader(folder.store());
  EXPECT_EQ(reader.run(run).status, "stopped");
  ASSERT_FALSE(reader.checkpoints(run).empty());
  EXPECT_EQ(reader.checkpoints(run).back().step, reader.run(run).summary.step);
}

// The memory of a value is the plan of a run that has it, and the largest value that fits is one below the first that does not.
TEST(Session, ForeseesTheMemoryOfAnotherRank) {
  Folder folder;
  SessionStart start = start_in(folder, 100'000);
  set_config(start.config, {"method=galore", "method.galore.rank=4"});
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const std::string path = "method.galore.rank";
  ASSERT_TRUE(until_done(session, session.post(ForeseeCommand{path, "9", 100})));
  const Foreseen seen = session.latest()->foreseen;
  EXPECT_EQ(seen.path, path);
  EXPECT_EQ(seen.value, "9");
  EXPECT_EQ(seen.largest, 100);
  EXPECT_GT(seen.room, seen.planned.total());
  EXPECT_GT(seen.planned.total(), session.latest()->memory_now.total());
  ASSERT_TRUE(until_done(session, session.post(EditCommand{path, "9"})));
  ASSERT_TRUE(until_done(session, session.post(StepCommand{1})));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 1 && s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->memory_now.bytes, seen.planned.bytes);
  ASSERT_TRUE(until_done(session, session.post(ForeseeCommand{path, "0", 100})));
  EXPECT_NE(session.latest()->last_refusal, "") << "not a rank";
  EXPECT_EQ(session.latest()->foreseen.value, "9");
}

}  // namespace
}  // namespace comera
