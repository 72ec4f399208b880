// A run that several processes train: commands that process 0 gets, what it stores, and its end when one of them fails.
#include "core/session/with_others.h"

#include "core/comm/process_threads.h"
#include "core/session/reproduce.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;

SessionStart start_with_others(const Folder& folder, int64_t parts, int64_t steps = 80) {
  SessionStart start = start_in(folder, steps);
  start.config.train.micro_batches = parts;
  return start;
}

std::shared_ptr<Communicator> shared(Communicator& others) {
  return {&others, [](Communicator*) {}};
}

// `lead`: process 0.
std::vector<std::string> run_with_others(int count, const std::function<void(std::shared_ptr<Communicator>)>& lead) {
  return run_processes(count, [&](Communicator& others) {
    if (others.process() == 0)
      lead(shared(others));
    else
      train_with_process_0(others);
  });
}

// At whatever steps the commands come, one process computes the run again from what is stored.
TEST(WithOthers, CommandsReachAllProcessesAtOneStep) {
  for (const int count : {2, 3}) {
    Folder folder;
    const auto ends = run_with_others(count, [&](std::shared_ptr<Communicator> others) {
      SessionStart start = start_with_others(folder, 4, 120);
      start.others = std::move(others);
      start.paused = true;
      Session session(start);
      ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
      session.post(StepCommand{10});
      ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 10 && s.phase == Phase::paused; }));
      session.post(EditCommand{"rank.cap.fc0.1", "3"});
      EXPECT_TRUE(until_done(session, session.post(EditCommand{"train.lr", "1e-3"})));
      EXPECT_TRUE(until_done(session, session.post(EditCommand{"train.lr", "-1"})));
      EXPECT_NE(session.latest()->last_refusal, "");
      session.post(ResumeCommand{});
      ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 40; }));
      session.post(EditCommand{"rank.cap.fc0.1", "8"});
      session.post(EditCommand{"stage", "early"});
      session.post(CheckpointCommand{});
      session.join();
      EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
      EXPECT_EQ(session.latest()->memory_peak.total(), session.latest()->memory_planned.total());
    });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
    const Reproduction again = reproduce_run(folder.store(), "small");
    EXPECT_TRUE(again.identical && again.weights_compared) << again.what << " at step " << again.step;
  }
}

// Checkpoints are of steps after which all have the same weights, and threads compute the run again.
TEST(WithOthers, TrainWeightsOfTheirOwnBetweenMeans) {
  Folder folder;
  const auto train = [&](const std::function<void(SessionStart&)>& change, const std::function<void(Session&)>& meanwhile) {
    const auto ends = run_with_others(2, [&](std::shared_ptr<Communicator> others) {
      SessionStart start = start_with_others(folder, 2, 100);
      start.config.train.sync_every = 6;
      start.config.method.comera.prune_every = 50;
      start.config.train.checkpoint_every = 16;
      start.config.train.eval_every = 40;
      start.others = std::move(others);
      start.paused = true;
      change(start);
      Session session(start);
      meanwhile(session);
      session.join();
      EXPECT_EQ(session.latest()->error_code, 0) << session.latest()->message;
    });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
  };
  const auto step_to = [](Session& session, int64_t step) {
    session.post(StepCommand{step - session.latest()->step});
    ASSERT_TRUE(until(session, [=](const Snapshot& s) { return s.step == step && s.phase == Phase::paused; }));
  };
  train([](SessionStart&) {},
        [&](Session& session) {
          ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
          step_to(session, 17);
          EXPECT_EQ(session.latest()->last_checkpoint_step, -1) << "that of step 16 is due";
          step_to(session, 19);
          EXPECT_EQ(session.latest()->last_checkpoint_step, 18);
          EXPECT_TRUE(until_done(session, session.post(CheckpointCommand{})));
          EXPECT_TRUE(until_done(session, session.post(EditCommand{"train.lr", "1e-3"})));
          step_to(session, 22);
          EXPECT_EQ(session.latest()->last_checkpoint_step, 18) << "weights are of one process";
          session.post(StopCommand{});
        });
  EXPECT_EQ(RunReader(folder.store()).checkpoints(RunReader(folder.store()).find("small").id).back().step, 24)
      << "a stop goes on to the mean";
  train([](SessionStart& start) { start.resume_run = "small", start.changes = {parse_change("train.lr_core=0.002", 29)}; },
        [&](Session& session) {
          ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
          step_to(session, 27);
          session.post(StopCommand{});
        });
  EXPECT_EQ(RunReader(folder.store()).checkpoints(RunReader(folder.store()).find("small").id).back().step, 28)
      << "a change that is due before step 29 takes the mean";
  train([](SessionStart& start) { start.resume_run = "small", start.paused = false; }, [](Session&) {});
  const Reproduction again = reproduce_run(folder.store(), "small");
  EXPECT_TRUE(again.identical && again.weights_compared) << again.what << " at step " << again.step;
  EXPECT_EQ(again.steps, 100);
  SessionStart alone;
  alone.store = folder.store();
  alone.resume_run = "small";
  alone.extend = 5;
  Session session(alone);
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": threads are the processes";
  SessionStart fork;
  fork.store = folder.store();
  fork.fork_run = "small";
  fork.at_step = 51;
  Session refused(fork);
  refused.join();
  EXPECT_NE(refused.latest()->message.find("cannot be forked at step 51"), std::string::npos) << refused.latest()->message;
  fork.at_step = 54;
  fork.sets = {"train.steps=60"};
  Session forked(fork);
  forked.join();
  EXPECT_EQ(forked.latest()->phase, Phase::finished) << forked.latest()->message;
  for (const char* name : {"small", "small-fork"}) {
    const Reproduction longer = reproduce_run(folder.store(), name);
    EXPECT_TRUE(longer.identical && longer.weights_compared) << name << ": " << longer.what << " at step " << longer.step;
  }
}

TEST(WithOthers, ARunGoesOnWithAnotherNumberAndIsForked) {
  Folder folder;
  const auto train = [&](int count, const std::function<void(SessionStart&)>& change) {
    const auto ends = run_with_others(count, [&](std::shared_ptr<Communicator> others) {
      SessionStart start = start_with_others(folder, 4);
      start.others = std::move(others);
      change(start);
      Session session(start);
      session.join();
      EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
  };
  train(2, [](SessionStart& start) { start.config.train.steps = 30; });
  train(4, [](SessionStart& start) { start.resume_run = "small", start.extend = 30; });
  train(3, [](SessionStart& start) {
    start.fork_run = "small", start.at_step = 40, start.sets = {"train.micro_batches=1", "train.batch=30"};
  });
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
  EXPECT_TRUE(reproduce_run(folder.store(), "small-fork").identical);
  EXPECT_EQ(load_stored_run(folder.store(), "small-fork").config.train.micro_batches, 3) << "a part a process";
}

TEST(WithOthers, AProcessThatFailsEndsTheRun) {
  Folder folder;
  const auto ends = run_processes(2, [&](Communicator& others) {
    if (others.process() == 1) {
      others.exchange("");  // what process 0 begins with
      throw Error(ErrorCode::device, "the device is lost", "its driver says so", "restart it");
    }
    SessionStart start = start_with_others(folder, 2);
    start.others = shared(others);
    Session session(start);
    session.join();
    EXPECT_EQ(session.latest()->phase, Phase::failed);
    EXPECT_EQ(session.latest()->message, "process 1: the device is lost");
    EXPECT_EQ(session.latest()->error_why, "its driver says so");
    EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::device));
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"", "the device is lost"}));
}

TEST(WithOthers, BatchesThatCannotBeSharedAreRefusedOnAll) {
  Folder folder;
  const auto ends = run_with_others(3, [&](std::shared_ptr<Communicator> others) {
    SessionStart start = start_with_others(folder, 1);
    start.others = std::move(others);
    Session session(start);
    session.join();
    EXPECT_EQ(session.latest()->message, "3 processes cannot share a batch of 32");
    EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::config));
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"", "3 processes cannot share a batch of 32", "3 processes cannot share a batch of 32"}));
}

}  // namespace
}  // namespace comera
