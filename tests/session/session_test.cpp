// A run on a thread of its own: what is posted is done at a step boundary and answered, what is shown is what is
// stored, and a replay shows what was shown live. Also run under the thread sanitizer.
#include "core/session/session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/session/inspect.h"
#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "core/session/step_profile.h"
#include "core/train/checkpoint.h"
#include "tests/store/support.h"
#include "tests/train/lagging_device.h"

namespace comera {
namespace {

using test::Folder;
using test::has;
using test::wait_for;

// Small and quick, with everything in it: late stage, falling ranks, cuts, scores, checkpoints.
SessionStart start_in(const Folder& folder, int64_t steps = 80) {
  SessionStart start;
  start.store = folder.store();
  RunConfig& config = start.config;
  config.name = "small";
  config.model.kind = "mlp";
  config.model.classes = 10;
  config.model.mlp = {.inputs = 784, .hidden = {32, 16}, .dropout = 0.1};
  config.model.tt.ffn_in.rank = 8;
  config.data.set = "fashion-mnist-demo";
  config.data.train_rows = 256;
  config.data.validation_rows = 64;
  config.method.comera.late_after = 30;
  config.method.comera.target = 0.3;
  config.method.comera.cut_every = 10;
  config.method.comera.cut_share = 0.05;
  config.train.steps = steps;
  config.train.batch = 32;
  config.train.threads = 1;
  config.train.lr_core = config.train.lr_rest = 2e-3;
  config.train.lr_rank = 5e-2;
  config.train.eval_every = 20;
  config.train.checkpoint_every = 25;
  validate_config(config, "test");
  return start;
}

bool until(const Session& session, const std::function<bool(const Snapshot&)>& condition) {
  return wait_for([&] { return condition(*session.latest()); }, 60);
}
bool until_done(const Session& session, Ticket ticket) {
  return until(session, [&](const Snapshot& s) { return s.last_ticket >= ticket; });
}

std::map<int64_t, std::map<std::string, double>> by_step(const std::map<std::string, Series>& metrics) {
  std::map<int64_t, std::map<std::string, double>> out;
  for (const auto& [name, series] : metrics)
    for (size_t i = 0; i < series.steps.size(); ++i) out[series.steps[i]][name] = series.values[i];
  return out;
}

// What a replay must show as it was shown live. Not times.
void expect_same(const Snapshot& live, const Snapshot& stored) {
  SCOPED_TRACE("step " + std::to_string(live.step));
  EXPECT_EQ(stored.run, live.run);
  EXPECT_EQ(stored.name, live.name);
  EXPECT_EQ(stored.step, live.step);
  EXPECT_EQ(stored.total_steps, live.total_steps);
  EXPECT_DOUBLE_EQ(stored.epoch, live.epoch);
  EXPECT_NEAR(stored.total_epochs, live.total_epochs, 1e-9);
  EXPECT_EQ(stored.late, live.late);
  EXPECT_EQ(stored.target_entries, live.target_entries);
  EXPECT_EQ(stored.last.step, live.last.step);
  EXPECT_EQ(stored.last.results.ce, live.last.results.ce);
  EXPECT_EQ(stored.last.results.loss, live.last.results.loss);
  EXPECT_EQ(stored.last.results.rho, live.last.results.rho);
  EXPECT_EQ(stored.last.results.lambda, live.last.results.lambda);
  EXPECT_EQ(stored.last.results.entries, live.last.results.entries);
  EXPECT_EQ(stored.last.accuracy, live.last.accuracy);
  for (int group = 0; group < kParamGroups; ++group) EXPECT_EQ(stored.last.learning_rate[group], live.last.learning_rate[group]);
  EXPECT_EQ(stored.last.tokens, live.last.tokens);
  EXPECT_EQ(stored.eval.step, live.eval.step);
  EXPECT_EQ(stored.eval.loss, live.eval.loss);
  EXPECT_EQ(stored.eval.accuracy, live.eval.accuracy);
  EXPECT_EQ(stored.eval.examples, live.eval.examples);
  EXPECT_EQ(stored.best_step, live.best_step);
  EXPECT_EQ(stored.best_loss, live.best_loss);
  EXPECT_EQ(stored.best_accuracy, live.best_accuracy);
  EXPECT_TRUE(stored.size == live.size) << stored.size.entries << " " << live.size.entries << " held " << stored.size.held_entries << " "
                                        << live.size.held_entries;
  ASSERT_EQ(stored.ranks.size(), live.ranks.size());
  for (size_t i = 0; i < live.ranks.size(); ++i) {
    EXPECT_EQ(stored.ranks[i].name, live.ranks[i].name);
    EXPECT_EQ(stored.ranks[i].live, live.ranks[i].live);
    EXPECT_EQ(stored.ranks[i].held, live.ranks[i].held);
    EXPECT_EQ(stored.ranks[i].initial, live.ranks[i].initial);
    EXPECT_EQ(stored.ranks[i].in_modes, live.ranks[i].in_modes);
    EXPECT_EQ(stored.ranks[i].out_modes, live.ranks[i].out_modes);
    EXPECT_EQ(stored.ranks[i].caps, live.ranks[i].caps);
    EXPECT_EQ(stored.ranks[i].weight, live.ranks[i].weight);
  }
  EXPECT_EQ(stored.memory_now.bytes, live.memory_now.bytes);
  EXPECT_EQ(stored.memory_planned.bytes, live.memory_planned.bytes);
  EXPECT_EQ(stored.last_checkpoint_step, live.last_checkpoint_step);
  EXPECT_EQ(stored.device, live.device);
}

TEST(Session, ReplayShowsWhatWasShownLive) {
  Folder folder;
  Session session([&] {
    SessionStart start = start_in(folder);
    start.config.train.keep_checkpoints = 100;
    start.paused = true;
    return start;
  }());
  std::vector<std::shared_ptr<const Snapshot>> shown;
  Records live;
  for (const int64_t step : {1, 7, 20, 25, 30, 31, 45, 60, 79}) {
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    if (step == 25) {  // a cap that takes nothing away now: what it would take belongs to the step before
      session.post(EditCommand{"rank.cap." + session.latest()->ranks.front().name + ".2", "8"});
      session.post(EditCommand{"rank.weight." + session.latest()->ranks.back().name, "0"});
    }
    session.post(StepCommand{step - session.latest()->step});
    ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.step == step; })) << session.latest()->step;
    shown.push_back(session.latest());
    live.append(session.drain());
  }
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  shown.push_back(session.latest());
  live.append(session.drain());
  ASSERT_EQ(shown.back()->phase, Phase::finished) << shown.back()->message;
  EXPECT_LT(shown.back()->size.held_entries, shown.front()->size.held_entries) << "nothing was cut: the test shows too little";
  EXPECT_TRUE(shown.back()->late);
  EXPECT_EQ(shown.back()->ranks.front().caps[1], 8);
  EXPECT_EQ(shown.back()->ranks.back().weight, 0);
  EXPECT_EQ(shown.front()->ranks.front().caps[1], 0) << "set before it was asked for";

  Replay replay(folder.store(), "small");
  EXPECT_EQ(replay.latest()->phase, Phase::finished);
  EXPECT_EQ(replay.latest()->memory_peak.bytes, shown.back()->memory_peak.bytes);
  for (const auto& snapshot : shown) {
    replay.seek(snapshot->step);
    expect_same(*snapshot, *replay.latest());
  }
  replay.seek(40);
  EXPECT_EQ(replay.latest()->phase, Phase::running);
  replay.seek(10'000);
  EXPECT_EQ(replay.step(), 80);
  replay.seek(-5);
  EXPECT_EQ(replay.step(), replay.steps().front());

  const Records stored = replay.drain();
  EXPECT_EQ(by_step(stored.metrics), by_step(live.metrics));
  EXPECT_EQ(by_step(live.metrics).size(), 80u);
  ASSERT_EQ(stored.events.size(), live.events.size());
  for (size_t i = 0; i < live.events.size(); ++i) {
    EXPECT_EQ(stored.events[i].kind, live.events[i].kind);
    EXPECT_EQ(stored.events[i].step, live.events[i].step);
    EXPECT_EQ(stored.events[i].body, live.events[i].body);
  }
  EXPECT_EQ(stored.ranks.size(), live.ranks.size());
  const auto by_purpose = [](const std::vector<MemoryRow>& rows) {
    std::map<std::pair<int64_t, std::string>, int64_t> bytes;
    for (const MemoryRow& row : rows) bytes[{row.step, row.purpose}] = row.bytes;
    return bytes;
  };
  EXPECT_EQ(by_purpose(stored.memory), by_purpose(live.memory));
  EXPECT_FALSE(live.memory.empty());
  EXPECT_TRUE(replay.drain().metrics.empty());
  EXPECT_FALSE(replay.refresh());
}

TEST(Session, AReplayOfALongRunTellsHowFarItIsAndCanBeGivenUp) {
  Folder folder;
  {
    Session session(start_in(folder, 3));
    ASSERT_TRUE(session.wait(60));
  }
  constexpr int64_t kSteps = 200'000, kTimes = 5000;
  {
    Database db(folder.store(), Database::Mode::write);
    const auto fill = [&](const std::string& into, const std::string& what, int64_t to) {
      db.run("WITH RECURSIVE count(n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM count WHERE n < " + std::to_string(to) + ") INSERT INTO " +
             into + " SELECT 1, " + what + " FROM count");
    };
    db.run("BEGIN");
    db.run("INSERT INTO steps VALUES(1, " + std::to_string(kSteps) + ", 0)");
    fill("metrics", "(SELECT metric FROM metric_names WHERE name = 'train_loss'), n, 1.0 / n", kSteps);
    fill("metrics", "(SELECT metric FROM metric_names WHERE name = 'step_ms'), n, n % 7", kTimes);
    db.run("COMMIT");
  }
  std::vector<double> shares;
  Replay replay(folder.store(), "small", [&](double share) { shares.push_back(share); });
  EXPECT_GE(shares.size(), 3u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GT(shares.front(), 0);
  EXPECT_LE(shares.back(), 1);
  EXPECT_EQ(static_cast<int64_t>(replay.steps().size()), kSteps);
  const Series times = RunReader(folder.store()).metric(replay.row().id, "step_ms");
  double sum = 0;
  for (size_t i = 0; i < times.values.size(); ++i) {
    sum += times.values[i];
    if (!std::set<int64_t>{1, 2, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4500, kTimes}.contains(times.steps[i])) continue;
    replay.seek(times.steps[i]);
    ASSERT_NEAR(replay.latest()->elapsed_s, sum / 1000, 1e-9) << "step " << times.steps[i];
  }
  Records records = replay.drain();
  EXPECT_EQ(static_cast<int64_t>(records.metrics.at("train_loss").steps.size()), kSteps);
  EXPECT_EQ(records.metrics.at("train_loss").values.back(), 1.0 / kSteps);
  struct Enough {};
  EXPECT_THROW(Replay(folder.store(), "small", [](double) { throw Enough(); }), Enough);
}

TEST(Session, AReplayFollowsARunThatStillTrains) {
  Folder folder;
  SessionStart start = start_in(folder, 100'000);
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{30});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 30 && s.phase == Phase::paused; }));
  ASSERT_TRUE(wait_for([&] { return !Replay(folder.store(), "small").steps().empty(); }));
  Replay replay(folder.store(), "small");
  ASSERT_TRUE(wait_for([&] { return replay.refresh(), replay.step() == 30; })) << "a cursor at the end stays at the end";
  EXPECT_EQ(replay.latest()->phase, Phase::running);
  replay.seek(10);
  session.post(StepCommand{30});
  ASSERT_TRUE(wait_for([&] { return replay.refresh(), replay.steps().back() == 60; }));
  EXPECT_EQ(replay.step(), 10) << "a cursor in the past stays there";
  expect_same(*session.latest(), [&] { return replay.seek(60), *replay.latest(); }());
}

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

TEST(Session, AForkBeginsAsItsParentWasAndItsReplayShowsThat) {
  Folder folder;
  {
    Session session(start_in(folder));
    ASSERT_TRUE(session.wait(60));
    ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  }
  SessionStart start;
  start.store = folder.store();
  start.fork_run = "small";
  start.at_step = 70;
  start.paused = true;
  Session fork(start);
  ASSERT_TRUE(until(fork, [](const Snapshot& s) { return s.phase == Phase::paused || s.error_code != 0; }));
  fork.post(StepCommand{1});
  ASSERT_TRUE(until(fork, [](const Snapshot& s) { return s.step == 71 && s.phase == Phase::paused; })) << fork.latest()->message;
  const auto shown = fork.latest();
  fork.post(StopCommand{false});
  ASSERT_TRUE(fork.wait(60));
  Replay parent(folder.store(), "small"), child(folder.store(), "small-fork");
  parent.seek(71);
  EXPECT_EQ(parent.latest()->last.results.ce, shown->last.results.ce);
  EXPECT_TRUE(parent.latest()->late);
  const auto replayed = child.latest();
  EXPECT_TRUE(replayed->late);
  EXPECT_TRUE(replayed->size == shown->size) << replayed->size.held_entries << " " << shown->size.held_entries;
  EXPECT_EQ(replayed->size.held_entries, parent.latest()->size.held_entries);
}

// What is asked for while the past is computed again is for the steps after it.
TEST(Session, NothingIsChangedInThePastOfAFork) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.train.checkpoint_every = 0;  // all of it is computed again
  {
    Session session(start);
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart again;
  again.store = folder.store();
  again.fork_run = "small";
  again.at_step = 70;
  Session fork(again);
  const Ticket edit = fork.post(EditCommand{"train.lr_core", "0.05"});
  fork.post(PauseCommand{});
  ASSERT_TRUE(until(fork, [](const Snapshot& s) { return s.phase == Phase::paused || s.error_code != 0; })) << fork.latest()->message;
  EXPECT_EQ(fork.latest()->step, 70);
  EXPECT_GE(fork.latest()->last_ticket, edit);
  EXPECT_EQ(fork.latest()->last_refusal, "");
  fork.post(ResumeCommand{});
  ASSERT_TRUE(fork.wait(60));
  Replay child(folder.store(), "small-fork");
  const Records records = child.drain();
  const auto edited =
      std::find_if(records.events.begin(), records.events.end(), [](const EventRow& event) { return event.kind == "edit"; });
  ASSERT_NE(edited, records.events.end());
  EXPECT_EQ(edited->step, 71);
  EXPECT_TRUE(reproduce_run(folder.store(), "small-fork").identical);
}

TEST(Session, CommandsAreDoneAtABoundaryAndAnswered) {
  Folder folder;
  SessionStart start = start_in(folder, 100'000);
  start.config.train.checkpoint_every = 0;
  start.config.method.comera.late_after = start.config.method.comera.cut_every = 0;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 5; }));
  ASSERT_TRUE(until_done(session, session.post(PauseCommand{})));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const int64_t at = session.latest()->step;
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.lr_rank", "0.001"})));
  EXPECT_EQ(session.latest()->last_refusal, "");
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.batch", "8"})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {"train.batch"})) << "fixed at the start";
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "7e7"})));
  EXPECT_NE(session.latest()->last_refusal, "") << "out of range";
  ASSERT_TRUE(until_done(session, session.post(LateStageCommand{})));
  EXPECT_EQ(session.latest()->last_refusal, "");
  EXPECT_EQ(session.latest()->step, at) << "paused";
  session.post(StepCommand{3});
  ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == at + 3 && s.phase == Phase::paused; }));
  EXPECT_TRUE(session.latest()->late);
  EXPECT_EQ(session.latest()->last.learning_rate[1], 0.001);
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
  EXPECT_THROW(parse_change("stage=early", 3), Error);
  EXPECT_THROW(parse_change("train.lr_core", 3), Error);
}

// A raised target: shown live, stored, replayed, resumed from before and after it, forked and computed again.
TEST(Session, ARegrowthIsAnEventLikeAnyOther) {
  Folder folder;
  SessionStart start = start_in(folder, 90);
  start.config.method.comera.loss_target = 5;  // the size is always further from its target
  start.config.train.keep_checkpoints = 100;
  start.paused = true;
  std::vector<std::shared_ptr<const Snapshot>> shown;
  {
    Session session(start);
    const auto go_to = [&](int64_t step) {
      ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
      session.post(StepCommand{step - session.latest()->step});
      ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.step == step; }))
          << session.latest()->message;
      shown.push_back(session.latest());
    };
    go_to(60);
    ASSERT_LE(session.latest()->size.entries, session.latest()->target_entries) << "the test wants the target reached";
    session.drain();
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "0.7"})));
    ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{})));  // between the edit and the step
    EXPECT_EQ(session.latest()->size.entries, shown.back()->size.entries);
    go_to(61);
    EXPECT_GT(session.latest()->size.entries, 1.5 * shown.front()->size.entries);
    EXPECT_GT(session.latest()->memory_now.total(), shown.front()->memory_now.total());
    EXPECT_LE(session.latest()->size.entries, session.latest()->target_entries);
    const Records records = session.drain();
    ASSERT_EQ(records.events.back().kind, "regrowth");
    EXPECT_EQ(records.events.back().step, 61);
    EXPECT_TRUE(has(records.events.back().body, {"\"reason\":\"target\"", "\"bonds\"", "\"layer\":\"fc0\"", "\"from\"", "\"held\""}));
    go_to(75);
    session.post(StopCommand{false});
    ASSERT_TRUE(session.wait(60));
  }
  {
    Replay replay(folder.store(), "small");
    for (const auto& snapshot : shown) {
      replay.seek(snapshot->step);
      const auto stored = replay.latest();
      EXPECT_TRUE(stored->size == snapshot->size) << "step " << snapshot->step;
      ASSERT_EQ(stored->ranks.size(), snapshot->ranks.size());
      for (size_t i = 0; i < stored->ranks.size(); ++i) {
        EXPECT_EQ(stored->ranks[i].live, snapshot->ranks[i].live);
        EXPECT_EQ(stored->ranks[i].held, snapshot->ranks[i].held);
      }
      EXPECT_EQ(stored->memory_now.bytes, snapshot->memory_now.bytes);
    }
  }
  // The last values of the run when it goes on from a step.
  const auto on_from = [&](int64_t step, bool fork) {
    SessionStart again;
    again.store = folder.store();
    (fork ? again.fork_run : again.resume_run) = "small";
    again.at_step = step;
    Session session(again);
    EXPECT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    return std::pair(session.latest()->last.results.loss, session.latest()->size.entries);
  };
  const auto end = on_from(75, false);
  EXPECT_EQ(on_from(60, false), end) << "from between the edit and the growth";
  EXPECT_EQ(on_from(50, false), end) << "from before both";
  EXPECT_EQ(on_from(70, true), end) << "a fork from after it";
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
  EXPECT_TRUE(reproduce_run(folder.store(), "small-fork").identical);
  // Some of its steps, the edit and the growth among them: from the checkpoint before, as the last resume left it.
  const Reproduction some = reproduce_run(folder.store(), "small", {}, {.after = 62, .last = 80});
  EXPECT_TRUE(some.identical) << some.what;
  EXPECT_EQ(some.from, 50);
  EXPECT_EQ(some.steps, 30);
  EXPECT_GT(some.values, 200);
  const Reproduction weights = reproduce_run(folder.store(), "small", {}, {.after = 10, .last = 50});
  EXPECT_TRUE(weights.identical) << weights.what;
  EXPECT_EQ(weights.from, 0);
  EXPECT_TRUE(weights.weights_compared) << "with the checkpoint of step 50";
  int64_t growths = 0;
  for (const EventRow& event : RunReader(folder.store()).events(Replay(folder.store(), "small").latest()->run))
    growths += event.kind == "regrowth";
  EXPECT_EQ(growths, 1) << "resuming leaves no second one in the log";
}

TEST(Session, ThePlanFollowsRanksThatGrowBeyondTheirStart) {
  Folder folder;
  SessionStart start = start_in(folder, 20);
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const auto first = session.latest();
  const int64_t initial = first->ranks[0].initial[0];
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"rank.cap.fc0.1", std::to_string(initial + 3)})));
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  const auto last = session.latest();
  ASSERT_GT(last->ranks[0].held[0], initial) << "the test wants a bond beyond its start";
  EXPECT_GT(last->memory_peak.total(), first->memory_planned.total());
  EXPECT_EQ(last->memory_peak.total(), last->memory_planned.total());
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

TEST(Session, TheEntriesOfOneBondAreShownOnRequest) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->inspected.bond, 0);
  session.post(StepCommand{30});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 30 && s.phase == Phase::paused; }));
  const LayerRanks layer = session.latest()->ranks.front();
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 2})));
  const auto shown = session.latest();
  EXPECT_EQ(shown->last_refusal, "");
  EXPECT_EQ(shown->inspected.layer, layer.name);
  EXPECT_EQ(shown->inspected.bond, 2);
  EXPECT_EQ(shown->inspected.step, 30);
  ASSERT_EQ(static_cast<int64_t>(shown->inspected.values.size()), shown->ranks.front().held[1]);
  const double threshold = ComeraConfig{}.threshold;
  EXPECT_EQ(std::count_if(shown->inspected.values.begin(), shown->inspected.values.end(), [&](double d) { return d > threshold; }),
            shown->ranks.front().live[1]);
  session.post(StepCommand{10});  // they are those of the newest step, also when the bond was cut
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 40 && s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->inspected.step, 40);
  EXPECT_NE(session.latest()->inspected.values, shown->inspected.values);
  EXPECT_EQ(static_cast<int64_t>(session.latest()->inspected.values.size()), session.latest()->ranks.front().held[1]);
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 99})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {".99"}));
  EXPECT_EQ(session.latest()->inspected.bond, 0);
  session.post(StopCommand{false});
  ASSERT_TRUE(session.wait(60));
}

// Looking changes nothing either, and a gradient is told only while there is one.
TEST(Session, ACoreIsLookedAtOnRequest) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const LayerRanks layer = session.latest()->ranks.front();
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 0, 1})));
  std::shared_ptr<const Snapshot> shown = session.latest();
  EXPECT_EQ(shown->inspected_core.layer, layer.name);
  EXPECT_EQ(shown->inspected_core.core, 1);
  EXPECT_EQ(shown->inspected.bond, 0);
  EXPECT_EQ(shown->inspected_core.shape, (std::vector<int64_t>{1, layer.in_modes[0], layer.held[0]}));
  const auto values = [](const InspectedCore& core) {
    int64_t all = 0;
    for (const int64_t bin : core.bins) all += bin;
    return all;
  };
  EXPECT_EQ(values(shown->inspected_core), layer.in_modes[0] * layer.held[0]);
  EXPECT_GT(shown->inspected_core.norm, 0);
  EXPECT_TRUE(std::isnan(shown->inspected_core.gradient_norm)) << "before the first step";
  session.post(StepCommand{3});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused && s.inspected_core.step == 3; }));
  EXPECT_GT(session.latest()->inspected_core.gradient_norm, 0);
  EXPECT_NE(session.latest()->inspected_core.norm, shown->inspected_core.norm);
  // Up to the first cut: the cores are smaller then, and their gradients are gone till the next step.
  const auto held = [&] { return session.latest()->ranks.front().held; };
  while (held() == layer.held && session.latest()->step < 75) {
    const int64_t to = session.latest()->step + 1;
    session.post(StepCommand{1});
    ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.inspected_core.step == to; }));
  }
  ASSERT_NE(held(), layer.held) << "nothing was cut";
  EXPECT_TRUE(std::isnan(session.latest()->inspected_core.gradient_norm));
  EXPECT_EQ(values(session.latest()->inspected_core), layer.in_modes[0] * held()[0]);
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 0, 9})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {"no core", ".9"}));
  EXPECT_EQ(session.latest()->inspected_core.core, 0);
  session.post(StopCommand{true});
  ASSERT_TRUE(session.wait(60));
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

TEST(InspectedCore, HistogramAndNorm) {
  const InspectedCore core = describe_core("a", 2, 7, {1, 5}, {-2, 0, 0, 1, 2});
  EXPECT_DOUBLE_EQ(core.norm, 3);
  EXPECT_EQ(core.largest, 2);
  ASSERT_EQ(core.bins.size(), kCoreBins);
  EXPECT_EQ(core.bins.front(), 1);
  EXPECT_EQ(core.bins.back(), 1) << "the largest value is in the last bin";
  EXPECT_EQ(core.bins[kCoreBins / 2], 2);
  EXPECT_EQ(describe_core("a", 1, 0, {2}, {0, 0}).bins[kCoreBins / 2], 2);
  const InspectedCore bad = describe_core("a", 1, 0, {2}, {kUnknown, 1});
  EXPECT_TRUE(std::isnan(bad.norm));
  EXPECT_EQ(bad.bins.back(), 1);
}

TEST(Session, AnAlertOfTheOneWhoWatchesIsStored) {
  Folder folder;
  SessionStart start = start_in(folder, 20);
  start.paused = true;
  Session session(std::move(start));
  session.post(StepCommand{5});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 5 && s.phase == Phase::paused; }));
  session.post(AlertCommand{3, "progress", "no progress"});
  session.post(AlertCommand{99, "progress", "of a step that is not there yet"});
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  std::vector<EventRow> alerts;
  const std::vector<EventRow> stored = Replay(folder.store(), "small").events();
  std::copy_if(stored.begin(), stored.end(), std::back_inserter(alerts), [](const EventRow& e) { return e.kind == "alert"; });
  ASSERT_EQ(alerts.size(), 2u);
  EXPECT_EQ(alerts[0].step, 3);
  EXPECT_EQ(alerts[0].body, R"({"kind":"progress","text":"no progress"})");
  EXPECT_EQ(alerts[1].step, 5);
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

// Measuring changes nothing that is computed, and what it found is told live as it is stored.
TEST(Session, AProfileOfSomeStepsIsStored) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{10});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 10 && s.phase == Phase::paused; }));
  session.post(ProfileCommand{15});
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  std::vector<EventRow> profiles;
  for (const EventRow& event : session.drain().events)
    if (event.kind == "profile") profiles.push_back(event);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].step, 25);
  const StepProfile profile = StepProfile::read(profiles[0].body, profiles[0].step);
  EXPECT_EQ(profile.steps, 15);
  double sum = 0;
  std::vector<std::string> names;
  for (const StepProfile::Phase& phase : profile.phases) {
    names.push_back(phase.name);
    sum += phase.mean;
    EXPECT_LE(phase.median, phase.p95);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"data", "forward", "backward", "refresh", "update", "ranks"}));
  EXPECT_NEAR(sum, profile.whole.mean, 1e-6 * profile.whole.mean);
  ASSERT_GT(profile.ops.size(), 5u);
  EXPECT_GE(profile.ops.front().ms, profile.ops.back().ms);
  double in_ops = 0;
  for (const StepProfile::Op& op : profile.ops) {
    EXPECT_GT(op.calls, 0) << op.name;
    in_ops += op.ms;
  }
  EXPECT_LE(in_ops, profile.whole.mean) << "more than the steps took: something else was counted too";
  const std::vector<EventRow> stored = Replay(folder.store(), "small").events();
  EXPECT_TRUE(
      std::any_of(stored.begin(), stored.end(), [&](const EventRow& e) { return e.kind == "profile" && e.body == profiles[0].body; }));
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

TEST(Session, WhatGoesWrongIsInTheLastSnapshot) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.data.set = folder.file("missing");
  Session session(start);
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::failed);
  EXPECT_NE(session.latest()->error_code, 0);
  EXPECT_NE(session.latest()->error_hint, "");

  start = start_in(folder, 200);
  start.config.train.lr_core = start.config.train.lr_rest = 10;
  start.config.train.lr_rank = 0;
  start.config.method.adam.weight_decay = 0.3;
  Session diverges(start);
  ASSERT_TRUE(diverges.wait(60));
  EXPECT_EQ(diverges.latest()->phase, Phase::diverged) << name_of(diverges.latest()->phase);
  Replay replay(folder.store(), diverges.latest()->run);
  EXPECT_EQ(replay.latest()->phase, Phase::diverged);
  EXPECT_EQ(replay.latest()->message, diverges.latest()->message);
}

// ---- devices ------------------------------------------------------------------------------------------------------

// Nothing of it is decided by results, so what comes late is what comes at once.
SessionStart start_on(const Folder& folder, int lag, int64_t lost_at = -1) {
  SessionStart start = start_in(folder);
  start.config.name = "lag-" + std::to_string(lag) + (lost_at < 0 ? "" : "-lost");
  start.config.method.comera.hold_at_target = false;
  start.config.train.keep_checkpoints = 100;
  start.open = [=](const std::string&, int) {
    auto device = std::make_unique<test::LaggingDevice>(lag);
    device->lost_at = lost_at;
    return device;
  };
  return start;
}

std::map<int64_t, std::map<std::string, double>> without_times(Records records) {
  records.metrics.erase("step_ms");
  return by_step(records.metrics);
}

TEST(Session, ResultsThatComeLateAreToldAndStoredAlike) {
  Folder folder;
  Records told[2];
  for (const int lag : {0, 2}) {
    SessionStart start = start_on(folder, lag);
    start.paused = true;
    Session session(start);
    const auto paused_at = [&](int64_t step) {
      return until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.step == step; });
    };
    ASSERT_TRUE(paused_at(0));
    session.post(StepCommand{7});
    ASSERT_TRUE(paused_at(7)) << "a pause waits";
    EXPECT_EQ(session.latest()->last.step, 7);
    session.post(EditCommand{"train.lr_rest", "1e-3"});
    session.post(StepCommand{11});
    ASSERT_TRUE(paused_at(18));
    session.post(CheckpointCommand{});
    session.post(ResumeCommand{});
    ASSERT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    EXPECT_EQ(session.latest()->last.step, 80);
    told[lag / 2] = session.drain();
  }
  EXPECT_EQ(without_times(told[0]), without_times(told[1]));
  ASSERT_EQ(told[0].events.size(), told[1].events.size());
  for (size_t i = 0; i < told[0].events.size(); ++i) {
    EXPECT_EQ(told[0].events[i].kind, told[1].events[i].kind);
    EXPECT_EQ(told[0].events[i].step, told[1].events[i].step);
  }
  ASSERT_EQ(told[0].ranks.size(), told[1].ranks.size());
  for (size_t i = 0; i < told[0].ranks.size(); ++i) {
    EXPECT_EQ(told[0].ranks[i].step, told[1].ranks[i].step);
    EXPECT_EQ(told[0].ranks[i].rank, told[1].ranks[i].rank);
  }
  const Reproduction again = reproduce_run(folder.store(), "lag-2");
  EXPECT_TRUE(again.identical) << again.what << " at step " << again.step;
  EXPECT_TRUE(again.weights_compared);
}

TEST(Session, ALossThatIsNotFiniteEndsALateRunWithItsCheckpointsWhole) {
  Folder folder;
  std::string message[2];
  std::map<int64_t, std::string> checkpoints[2];
  for (const int lag : {0, 2}) {
    SessionStart start = start_on(folder, lag);
    start.config.train.steps = 200;
    start.config.train.lr_core = start.config.train.lr_rest = 10;
    start.config.train.lr_rank = 0;
    start.config.method.adam.weight_decay = 0.3;
    start.config.train.checkpoint_every = 3;
    start.config.train.eval_every = 0;
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::diverged) << name_of(session.latest()->phase);
    message[lag / 2] = session.latest()->message;
    EXPECT_NE(message[lag / 2].find(" at step " + std::to_string(session.latest()->step + 1)), std::string::npos) << message[lag / 2];
    EXPECT_EQ(session.latest()->last.step, session.latest()->step) << "all steps before it were told";
    checkpoints[lag / 2] = load_stored_run(folder.store(), session.latest()->run).checkpoints;
  }
  EXPECT_EQ(message[0], message[1]);
  ASSERT_EQ(checkpoints[0].size(), checkpoints[1].size());
  for (const auto& [step, path] : checkpoints[0]) EXPECT_EQ(first_file_difference(path, checkpoints[1].at(step)), "") << step;
}

TEST(Session, ALostDeviceEndsTheRunAsFailedAndItGoesOnElsewhere) {
  Folder folder;
  std::map<int64_t, std::map<std::string, double>> whole;
  {
    Session session(start_on(folder, 0));
    ASSERT_TRUE(session.wait(60));
    whole = without_times(session.drain());
  }
  const std::map<int64_t, std::string> expected = load_stored_run(folder.store(), "lag-0").checkpoints;
  {
    SessionStart start = start_on(folder, 2, 40);
    start.paused = true;
    Session session(start);
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    session.post(InspectCommand{session.latest()->ranks.front().name, 1, 0});  // what is looked at is lost as well
    session.post(ResumeCommand{});
    ASSERT_TRUE(session.wait(60));
    const auto last = session.latest();
    EXPECT_EQ(last->phase, Phase::failed);
    EXPECT_EQ(last->error_code, static_cast<int>(ErrorCode::device));
    EXPECT_EQ(last->last_checkpoint_step, 25);
    EXPECT_LE(last->step, 40);
    EXPECT_EQ(last->last.step, last->step);
  }
  const StoredRun lost = load_stored_run(folder.store(), "lag-2-lost");
  EXPECT_EQ(lost.status, "failed");
  ASSERT_EQ(lost.checkpoints.size(), 1u);
  EXPECT_EQ(first_file_difference(expected.at(25), lost.checkpoints.at(25)), "");

  SessionStart again;
  again.store = folder.store();
  again.resume_run = lost.id;
  again.device = "cpu";
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  for (const auto& [step, values] : without_times(session.drain())) EXPECT_EQ(values, whole.at(step)) << step;
  EXPECT_EQ(first_file_difference(expected.at(80), load_stored_run(folder.store(), lost.id).checkpoints.at(80)), "");
}

// A resume from an earlier step takes back what came later, also from one who read it before.
TEST(Session, AReplayForgetsWhatAResumeTookBack) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), test::start_of("again"), test::quick());
    id = writer.run_id();
    for (int64_t step = 1; step <= 50; ++step) writer.metrics(step, {{"train_loss", 1}});
    writer.metrics(40, {{"val_loss", 0.4}});
    writer.rank(0, "a", 1, 30);
    writer.rank(45, "a", 1, 20);
    writer.finish("stopped");
    ASSERT_TRUE(writer.flush());
  }
  Replay replay(folder.store(), id);
  EXPECT_EQ(replay.step(), 50);
  const Records first = replay.drain();
  EXPECT_EQ(first.metrics.at("train_loss").steps.size(), 50u);
  ASSERT_EQ(first.times.steps, first.metrics.at("train_loss").steps);
  EXPECT_TRUE(std::isfinite(first.times.values[0]));
  EXPECT_TRUE(std::is_sorted(first.times.values.begin(), first.times.values.end()));
  {
    RunWriter writer(folder.store(), id, test::quick());
    writer.truncate_after(25);
    writer.event(25, "resume", R"({"from_step": 25})");
    for (int64_t step = 26; step <= 30; ++step) writer.metrics(step, {{"train_loss", 2}});
    writer.rank(28, "a", 1, 29);
    ASSERT_TRUE(writer.flush());
    EXPECT_TRUE(replay.refresh());
    EXPECT_EQ(replay.step(), 30) << "it was at the end, and is";
    EXPECT_EQ(replay.latest()->last.results.ce, 2);
    EXPECT_EQ(replay.latest()->eval.step, 0) << "the score of a step that was taken back";
    const Records again = replay.drain();
    EXPECT_EQ(again.metrics.at("train_loss").steps, (std::vector<int64_t>{26, 27, 28, 29, 30}));
    EXPECT_EQ(again.times.steps, again.metrics.at("train_loss").steps);
    ASSERT_EQ(again.ranks.size(), 1u);
    EXPECT_EQ(again.ranks[0].step, 28);
    writer.finish("stopped");
    ASSERT_TRUE(writer.flush());
  }
  EXPECT_EQ(replay.steps().back(), 30);
  replay.refresh();
  EXPECT_TRUE(replay.drain().metrics.empty()) << "told twice";
}

TEST(Session, AReplayWithoutAConfigThatCanBeReadSaysSo) {
  Folder folder;
  for (const char* config : {"{broken", R"({"train":{"batch":"many"}})", R"({"no_such":{"setting":1}})", "[1]"}) {
    RunStart start = test::start_of("odd");
    start.config = config;
    RunWriter writer(folder.store(), start, test::quick());
    writer.metrics(1, {{"train_loss", 1.5}});
    writer.rank(0, "a", 1, 30);
    ASSERT_TRUE(writer.flush());
    Replay replay(folder.store(), writer.run_id());
    EXPECT_NE(replay.config_problem(), "") << config;
    EXPECT_EQ(replay.latest()->last.results.ce, 1.5) << config;
    EXPECT_TRUE(replay.latest()->ranks.empty());
  }
}

TEST(Session, ARunOfWhichNothingWasRecordedCanBeReplayed) {
  Folder folder;
  std::string id;
  { id = RunWriter(folder.store(), test::start_of("empty")).run_id(); }
  Replay replay(folder.store(), id);
  EXPECT_TRUE(replay.steps().empty());
  EXPECT_EQ(replay.latest()->step, 0);
  EXPECT_EQ(replay.latest()->phase, Phase::interrupted);
  EXPECT_THROW(Replay(folder.store(), "nobody"), Error);
}

}  // namespace
}  // namespace comera
