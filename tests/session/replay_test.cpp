// Stored runs shown again: as they were shown live, also those that were forked, resumed or still train.
#include "core/session/session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;
using test::wait_for;

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
    writer.memory(0, "data", 100);
    writer.memory(45, "data", 50);
    writer.event(45, "stage", R"({"stage": "late", "reason": "steps"})");
    writer.finish("stopped");
    ASSERT_TRUE(writer.flush());
  }
  Replay replay(folder.store(), id);
  EXPECT_EQ(replay.step(), 50);
  EXPECT_TRUE(replay.latest()->late);
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
    writer.memory(28, "data", 70);
    ASSERT_TRUE(writer.flush());
    EXPECT_TRUE(replay.refresh());
    EXPECT_EQ(replay.step(), 30) << "it was at the end, and is";
    EXPECT_EQ(replay.latest()->last.results.ce, 2);
    EXPECT_EQ(replay.latest()->eval.step, 0) << "the score of a step that was taken back";
    EXPECT_FALSE(replay.latest()->late) << "so was the switch to the late stage";
    const Records again = replay.drain();
    EXPECT_EQ(again.metrics.at("train_loss").steps, (std::vector<int64_t>{26, 27, 28, 29, 30}));
    EXPECT_EQ(again.times.steps, again.metrics.at("train_loss").steps);
    ASSERT_EQ(again.ranks.size(), 1u);
    EXPECT_EQ(again.ranks[0].step, 28);
    ASSERT_EQ(again.memory.size(), 1u) << "before the last change that was known, and new";
    EXPECT_EQ(again.memory[0].step, 28);
    EXPECT_EQ(replay.latest()->memory_now.total(), 70);
    replay.seek(27);
    EXPECT_EQ(replay.latest()->memory_now.total(), 100);
    replay.seek(30);
    writer.finish("stopped");
    ASSERT_TRUE(writer.flush());
  }
  EXPECT_EQ(replay.steps().back(), 30);
  replay.refresh();
  EXPECT_TRUE(replay.drain().metrics.empty()) << "told twice";
}

TEST(Session, AReplayCountsTheTimeOfStepsThatAResumeMadeAgain) {
  Folder folder;
  RunWriter writer(folder.store(), test::start_of("again"), test::quick());
  const auto train = [&](int64_t from, int64_t to, double ms) {
    for (int64_t step = from; step <= to; ++step) writer.metrics(step, {{"step_ms", ms}});
    ASSERT_TRUE(writer.flush());
  };
  writer.event(2000, "stage", R"({"stage": "late", "reason": "steps"})");
  train(1, 3000, 1);
  Replay replay(folder.store(), writer.run_id());
  EXPECT_DOUBLE_EQ(replay.latest()->elapsed_s, 3);
  EXPECT_TRUE(replay.latest()->late);
  writer.truncate_after(500);
  writer.event(500, "resume", R"({"from_step": 500})");
  train(501, 3000, 5);
  replay.refresh();
  EXPECT_EQ(replay.step(), 3000);
  EXPECT_FALSE(replay.latest()->late) << "the switch was taken back, and there is no other one";
  for (const int64_t step : {500, 1500, 3000}) {
    replay.seek(step);
    EXPECT_DOUBLE_EQ(replay.latest()->elapsed_s, 0.5 + 0.005 * static_cast<double>(step - 500)) << step;
  }
  replay.seek(1000);
  EXPECT_DOUBLE_EQ(replay.latest()->steps_per_s, 200) << "of the last steps";
  EXPECT_EQ(replay.latest()->step_ms_median, 5) << "of a thousand steps, most of which took that long";
}

TEST(Session, TheBestScoreIsTheFirstOfEqualOnes) {
  Folder folder;
  RunWriter writer(folder.store(), test::start_of("equal"), test::quick());
  for (const auto& [step, loss, accuracy] : {std::tuple{10, 0.5, 0.1}, {20, 0.4, 0.2}, {30, 0.4, 0.3}, {40, 0.6, 0.9}})
    writer.metrics(step, {{"train_loss", 1}, {"val_loss", loss}, {"val_accuracy", accuracy}});
  ASSERT_TRUE(writer.flush());
  Replay replay(folder.store(), writer.run_id());
  EXPECT_EQ(replay.latest()->best_step, 20);
  EXPECT_EQ(replay.latest()->best_loss, 0.4);
  EXPECT_EQ(replay.latest()->best_accuracy, 0.2) << "that of its step";
  replay.seek(10);
  EXPECT_EQ(replay.latest()->best_step, 10);
}

TEST(Session, TheFirstDifferenceOfTwoFilesIsNamed) {
  Folder folder;
  const auto write = [&](const char* name, const std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, double>>& tensors) {
    SafetensorsWriter writer;
    for (const auto& [tensor, dtype, shape, value] : tensors) {
      int64_t count = 1;
      for (const int64_t side : shape) count *= side;
      writer.add_values(tensor, dtype, shape, std::vector<double>(static_cast<size_t>(count), value));
    }
    writer.finish(folder.file(name));
    return folder.file(name);
  };
  const std::string a = write("a", {{"w", "F32", {2, 3}, 1}, {"x", "F32", {4}, 2}});
  EXPECT_EQ(first_file_difference(a, a), "");
  EXPECT_EQ(first_file_difference(a, write("b", {{"w", "F32", {2, 3}, 1}, {"x", "F32", {4}, 3}})), "x");
  EXPECT_EQ(first_file_difference(a, write("b", {{"w", "F32", {3, 2}, 1}, {"x", "F32", {4}, 2}})), "w")
      << "another shape of the same bytes";
  EXPECT_EQ(first_file_difference(a, write("b", {{"w", "F32", {2, 3}, 1}, {"x", "F64", {2}, 2}})), "x") << "another type";
  const std::string less = write("b", {{"w", "F32", {2, 3}, 1}});
  EXPECT_EQ(first_file_difference(a, less), "x");
  EXPECT_EQ(first_file_difference(less, a), "x") << "one more";
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

// Of a run without tensor trains: the matrices that its method has a rank for.
TEST(Session, ARunOfMatricesWithRanksNamesThem) {
  for (const std::vector<std::string>& method : {std::vector<std::string>{"dense", "galore"}, {"dense", "adamw"}, {"lora", "adamw"}}) {
    Folder folder;
    SessionStart start = start_in(folder, 2);
    start.config.method.weights = method[0];
    start.config.method.optimizer = method[1];
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    const auto live = session.latest();
    ASSERT_EQ(live->phase, Phase::finished) << live->message;
    EXPECT_EQ(live->ranks.size(), 0u);
    EXPECT_EQ(live->ranked.empty(), method[1] == "adamw" && method[0] == "dense") << method[0] << " " << method[1];
    const Replay replay(folder.store(), "small");
    const auto stored = replay.latest();
    ASSERT_EQ(stored->ranked.size(), live->ranked.size());
    for (size_t i = 0; i < live->ranked.size(); ++i) {
      const RankedMatrix &a = live->ranked[i], &b = stored->ranked[i];
      EXPECT_EQ(std::tie(a.name, a.rows, a.columns), std::tie(b.name, b.rows, b.columns));
      EXPECT_GT(a.rows, 1);
      EXPECT_GT(a.columns, 1);
      EXPECT_EQ(a.name.find(".lora"), std::string::npos) << a.name;
    }
  }
}

// The limit of the steps a second that was in force, as a session that trains shows its speed.
TEST(Session, AReplayShowsTheSpeedUnderItsLimit) {
  Folder folder;
  RunStart start = test::start_of("limited");
  start.config = R"({"train": {"batch": 32, "max_steps_per_s": 50}})";
  start.total_steps = 2000;
  RunWriter writer(folder.store(), start, test::quick());
  for (int64_t step = 1; step <= 1000; ++step) writer.metrics(step, {{"step_ms", 2}});
  writer.event(500, "edit", R"({"path": "train.max_steps_per_s", "value": "20"})");
  writer.event(900, "edit", R"({"path": "train.max_steps_per_s", "value": "0"})");
  ASSERT_TRUE(writer.flush());
  Replay replay(folder.store(), writer.run_id());
  for (const auto& [step, speed] : {std::pair<int64_t, double>{400, 50}, {500, 20}, {899, 20}, {1000, 500}}) {
    replay.seek(step);
    EXPECT_DOUBLE_EQ(replay.latest()->steps_per_s, speed) << step;
    EXPECT_DOUBLE_EQ(replay.latest()->eta_s, static_cast<double>(2000 - step) / speed) << step;
    EXPECT_EQ(replay.latest()->step_ms_median, 2);
  }
}

}  // namespace
}  // namespace comera
