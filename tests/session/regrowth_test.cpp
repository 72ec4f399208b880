// Ranks that grow while a run trains: an event like any other, and the plan follows.
#include "core/session/session.h"

#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;
using test::has;

// A raised target: shown live, stored, replayed, resumed from before and after it, forked and computed again.
TEST(Session, ARegrowthIsAnEventLikeAnyOther) {
  Folder folder;
  SessionStart start = start_in(folder, 90);
  start.config.method.comera.loss_target = 5;  // the size is always further from its target
  start.config.method.comera.target = 0.4;
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

}  // namespace
}  // namespace comera
