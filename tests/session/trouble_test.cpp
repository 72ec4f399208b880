// Runs that end badly, and devices whose results come late or that are lost.
#include "core/session/session.h"

#include <map>

#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "core/session/run_sampler.h"
#include "core/train/checkpoint.h"
#include "tests/session/support.h"
#include "tests/train/lagging_device.h"

namespace comera {
namespace {

using test::Folder;

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
  start.config.train.lr_core = start.config.train.lr = 10;
  start.config.train.lr_rank = 0;
  start.config.method.adam.weight_decay = 0.3;
  Session diverges(start);
  ASSERT_TRUE(diverges.wait(60));
  EXPECT_EQ(diverges.latest()->phase, Phase::diverged) << name_of(diverges.latest()->phase);
  Replay replay(folder.store(), diverges.latest()->run);
  EXPECT_EQ(replay.latest()->phase, Phase::diverged);
  EXPECT_EQ(replay.latest()->message, diverges.latest()->message);
}

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
  std::erase_if(records.metrics, [](const auto& of) { return is_measured(of.first); });
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
    session.post(EditCommand{"train.lr", "1e-3"});
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
    start.config.train.lr_core = start.config.train.lr = 10;
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

// Whoever looks at the stored run knows that memory was the reason, so that less of it can be offered.
TEST(Session, AStoredRunTellsThatItFailedForWantOfMemory) {
  for (const ErrorCode code : {ErrorCode::memory, ErrorCode::device}) {
    Folder folder;
    SessionStart start = start_in(folder);
    start.open = [=](const std::string&, int) {
      auto device = std::make_unique<test::LaggingDevice>(0);
      device->lost_at = 10;
      device->loss = code;
      return device;
    };
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    session.join();
    ASSERT_EQ(session.latest()->phase, Phase::failed);
    const RunRow row = RunReader(folder.store()).run(session.latest()->run);
    EXPECT_EQ(row.message, (code == ErrorCode::memory ? "out of memory: " : "") + session.latest()->message);
    EXPECT_EQ(failed_for_memory(row), code == ErrorCode::memory);
    EXPECT_EQ(Replay(folder.store(), row.id).latest()->error_code, code == ErrorCode::memory ? static_cast<int>(code) : 0);
  }
}

}  // namespace
}  // namespace comera
