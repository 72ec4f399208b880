// What is new of a stored run, read by whoever follows it: as much as is new, and only where it is a continuation.
#include "core/session/run_rows.h"

#include <cstring>

#include "core/session/replay.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;

void write_steps(RunWriter& writer, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    const auto x = static_cast<double>(step);
    writer.metrics(step, {{"train_loss", 1 / x}, {"entries", 1000 - x}, {"step_ms", 100}});
    if (step % 10 == 0) writer.metrics(step, {{"val_loss", 2 / x}});
  }
  ASSERT_TRUE(writer.flush()) << writer.store_problem();
}

// Rows that the store gives for 20 new steps of a run that has so many.
int64_t read_for_twenty(int64_t known) {
  const Folder folder;
  RunWriter writer(folder.store(), test::start_of("long"), test::quick());
  writer.event(0, "start");
  for (int64_t bond = 1; bond <= 5; ++bond) writer.rank(0, "a", bond, 30);
  writer.memory(0, "tt_core", 1000);
  write_steps(writer, 1, known);
  const Replay replay(folder.store(), writer.run_id());
  writer.rank(known + 3, "a", 2, 29);
  writer.event(known + 5, "checkpoint");
  write_steps(writer, known + 1, known + 20);
  const RunReader reader(folder.store());
  const RunRows rows = read_rows(reader, writer.run_id(), replay.place());
  EXPECT_EQ(rows.metrics.at("train_loss").steps.size(), 20u);
  EXPECT_EQ(rows.metrics.at("train_loss").steps.front(), known + 1);
  EXPECT_EQ(rows.metrics.at("val_loss").values->size(), 2u);
  EXPECT_EQ(rows.times.steps.back(), known + 20);
  EXPECT_EQ(rows.events.size(), 1u);
  EXPECT_EQ(rows.ranks.size(), 6u) << "those of step 0 come again";
  EXPECT_EQ(rows.memory.size(), 1u) << "that of step 0, too";
  EXPECT_EQ(rows.last_step, known + 20);
  EXPECT_TRUE(replay.continues(rows));
  // 3 metrics of 20 steps, 2 scores, 20 times, 6 ranks, the memory and the event; the rest is the run, the names of its metrics
  // and its key with every question.
  EXPECT_GE(rows.read, 3 * 20 + 2 + 20 + 6 + 1 + 1);
  EXPECT_LE(rows.read, 3 * 20 + 2 + 20 + 6 + 1 + 1 + 40);
  return rows.read;
}

TEST(RunRows, WhatIsReadGoesWithWhatIsNew) {
  EXPECT_EQ(read_for_twenty(100), read_for_twenty(5000)) << "steps that are known are read again";
}

void expect_same_replays(Replay& grown, Replay& whole) {
  EXPECT_EQ(grown.row().status, whole.row().status);
  EXPECT_EQ(grown.steps(), whole.steps());
  ASSERT_EQ(grown.metrics().size(), whole.metrics().size());
  const auto same = [](const Replay::Column& a, const Replay::Column& b, const std::string& name) {
    EXPECT_EQ(a.steps, b.steps) << name;
    ASSERT_EQ(a.values->size(), b.values->size()) << name;
    EXPECT_EQ(std::memcmp(a.values->data(), b.values->data(), a.values->size() * sizeof(double)), 0) << name;
  };
  for (const auto& [name, column] : whole.metrics()) same(grown.metrics().at(name), column, name);
  same(grown.times(), whole.times(), "times");
  ASSERT_EQ(grown.events().size(), whole.events().size());
  for (size_t i = 0; i < whole.events().size(); ++i) EXPECT_EQ(grown.events()[i].body, whole.events()[i].body);
  EXPECT_EQ(grown.checkpoints().size(), whole.checkpoints().size());
  for (const int64_t step : whole.steps()) {
    grown.seek(step);
    whole.seek(step);
    const auto a = grown.latest(), b = whole.latest();
    expect_same(*b, *a);
    EXPECT_EQ(a->elapsed_s, b->elapsed_s);
    EXPECT_EQ(a->phase, b->phase);
    EXPECT_EQ(a->memory_peak.bytes, b->memory_peak.bytes);
  }
}

// A real run with falling ranks, cuts, scores and checkpoints, followed while it trains.
TEST(RunRows, AReplayThatGrewIsThatOfAWholeReading) {
  const Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(start);
  const auto train_to = [&](int64_t step) {
    session.post(StepCommand{step - session.latest()->step});
    ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == step && s.phase == Phase::paused; }));
    ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{}))) << "with it all before is in the store";
  };
  train_to(20);
  Replay grown(folder.store(), "small");
  int64_t told = static_cast<int64_t>(grown.drain().metrics.at("train_loss").steps.size());
  EXPECT_EQ(told, 20);
  grown.seek(7);
  const auto append = [&] {
    const RunReader reader(folder.store());
    RunRows rows = read_rows(reader, grown.row().id, grown.place());
    ASSERT_TRUE(grown.continues(rows));
    grown.append(std::move(rows));
    EXPECT_EQ(grown.step(), 7) << "the cursor stays";
    const Records records = grown.drain();
    if (const auto loss = records.metrics.find("train_loss"); loss != records.metrics.end())
      told += static_cast<int64_t>(loss->second.steps.size());
  };
  for (const int64_t step : {21, 45, 46, 62}) {
    train_to(step);
    append();
    EXPECT_EQ(told, step) << "each step is told once";
    Replay whole(folder.store(), "small");
    expect_same_replays(grown, whole);
    grown.seek(7);
  }
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  append();
  EXPECT_EQ(told, 80);
  Replay whole(folder.store(), "small");
  EXPECT_EQ(whole.row().status, "finished");
  const int64_t held = whole.latest()->size.held_entries;
  whole.seek(1);
  EXPECT_LT(held, whole.latest()->size.held_entries) << "nothing was cut: the test shows too little";
  expect_same_replays(grown, whole);
}

TEST(RunRows, NothingNewIsAContinuation) {
  const Folder folder;
  const std::string id = test::make_run(folder.store(), "done", 30);
  const Replay replay(folder.store(), id);
  const RunReader reader(folder.store());
  const RunRows rows = read_rows(reader, id, replay.place());
  EXPECT_TRUE(rows.metrics.empty());
  EXPECT_TRUE(rows.times.steps.empty());
  EXPECT_TRUE(replay.continues(rows));
}

// Whether what comes after `change` continues 50 steps with an edit that waits for step 80, and ranks at step 50.
bool continues_after(const std::function<void(RunWriter&)>& change) {
  const Folder folder;
  RunWriter writer(folder.store(), test::start_of("told"), test::quick());
  writer.event(0, "start");
  writer.event(80, "edit", R"({"path": "train.lr_rank", "value": "0.5"})");
  writer.rank(0, "a", 1, 30);
  writer.rank(0, "a", 2, 30);
  writer.memory(0, "tt_core", 1000);
  write_steps(writer, 1, 49);
  writer.rank(50, "a", 1, 20);
  write_steps(writer, 50, 50);
  const Replay replay(folder.store(), writer.run_id());
  change(writer);
  EXPECT_TRUE(writer.flush());
  const RunReader reader(folder.store());
  return replay.continues(read_rows(reader, writer.run_id(), replay.place()));
}

TEST(RunRows, APastThatChangedIsNoContinuation) {
  EXPECT_TRUE(continues_after([](RunWriter& writer) {
    writer.rank(51, "a", 2, 10);
    write_steps(writer, 51, 60);
  }));
  EXPECT_FALSE(continues_after([](RunWriter& writer) {
    writer.truncate_after(25);
    writer.event(25, "resume", R"({"from_step": 25})");
    write_steps(writer, 26, 70);
  })) << "a resume";
  EXPECT_FALSE(continues_after([](RunWriter& writer) { writer.truncate_after(25); })) << "its event is not stored yet";
  EXPECT_FALSE(continues_after([](RunWriter& writer) {
    writer.event(51, "edit", R"({"path": "train.lr_rank", "value": "0.1"})");
    writer.forget_edits("train.lr_rank", 51);
    write_steps(writer, 51, 60);
  })) << "the change that waited is given up";
  EXPECT_FALSE(continues_after([](RunWriter& writer) {
    writer.rank(50, "a", 2, 10);
    write_steps(writer, 51, 60);
  })) << "step 50 was stored in two parts";
}

// One that follows by itself forgets a change that was given up, as the store did.
TEST(RunRows, AReplayForgetsAChangeThatWasGivenUp) {
  const Folder folder;
  RunWriter writer(folder.store(), test::start_of("told"), test::quick());
  writer.event(0, "start");
  writer.event(80, "edit", R"({"path": "rank.cap.a.1", "value": "3"})");
  write_steps(writer, 1, 50);
  Replay replay(folder.store(), writer.run_id());
  EXPECT_EQ(replay.events().size(), 2u);
  writer.event(51, "edit", R"({"path": "rank.cap.a.1", "value": "9"})");
  writer.forget_edits("rank.cap.a.1", 51);
  write_steps(writer, 51, 60);
  EXPECT_TRUE(replay.refresh());
  ASSERT_EQ(replay.events().size(), 2u);
  EXPECT_EQ(replay.events().back().step, 51);
  const Records told = replay.drain();
  EXPECT_EQ(told.metrics.at("train_loss").steps.size(), 60u);
}

}  // namespace
}  // namespace comera
