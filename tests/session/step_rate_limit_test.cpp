// `train.max_steps_per_s`: when steps begin, and that nothing else depends on it.
#include "core/session/step_rate_limit.h"

#include "core/session/reproduce.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using std::chrono::duration;
using test::Folder;
using Time = StepRateLimit::Time;

Time at(double seconds) { return Time{} + std::chrono::duration_cast<Time::duration>(duration<double>(seconds)); }

// Steps that take `step_s` each, on a clock that only they and the waits move. Returns when each began.
std::vector<double> begins(double limit, double step_s, int steps, double late_s = 0) {
  StepRateLimit rate;
  std::vector<double> out;
  double now = 100;
  for (int i = 0; i < steps; ++i) {
    if (const double wait = rate.wait_s(limit, at(now)); wait > 0) now += wait + late_s;
    rate.begin(limit, at(now));
    out.push_back(now - 100);
    now += step_s;
  }
  return out;
}

TEST(StepRateLimit, HoldsTheRateOfFastSteps) {
  const std::vector<double> times = begins(20, 0.01, 101);
  for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], 0.05 * static_cast<double>(i), 1e-6) << i;
}

TEST(StepRateLimit, SlowStepsAndNoLimitDoNotWait) {
  EXPECT_NEAR(begins(20, 0.08, 11).back(), 0.8, 1e-9);
  EXPECT_NEAR(begins(0, 0.01, 11).back(), 0.1, 1e-9);
}

// A system that wakes late must not lower the rate.
TEST(StepRateLimit, LateWakingDoesNotAddUp) { EXPECT_NEAR(begins(20, 0.01, 101, 0.004).back(), 5.004, 1e-6); }

TEST(StepRateLimit, APauseIsNotMadeUpFor) {
  StepRateLimit rate;
  rate.begin(20, at(1));
  EXPECT_EQ(rate.wait_s(20, at(9)), 0);
  rate.begin(20, at(9));
  EXPECT_NEAR(rate.wait_s(20, at(9.01)), 0.04, 1e-9);
}

TEST(StepRateLimit, ANewLimitHoldsAtOnce) {
  StepRateLimit rate;
  rate.begin(1, at(1));
  EXPECT_NEAR(rate.wait_s(1, at(1.2)), 0.8, 1e-9);
  EXPECT_NEAR(rate.wait_s(4, at(1.2)), 0.05, 1e-9);
  EXPECT_EQ(rate.wait_s(0, at(1.2)), 0);
}

TEST(Session, AStepLimitChangesNoNumber) {
  Folder folder;
  SessionStart start = start_in(folder, 60);
  start.config.train.max_steps_per_s = 400;
  start.changes = {parse_change("train.max_steps_per_s=300", 40)};
  Session session(start);
  session.join();
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_LE(session.latest()->steps_per_s, 300);
  const Reproduction again = reproduce_run(start.store, session.latest()->run);  // without waiting
  EXPECT_TRUE(again.identical) << again.what << " at step " << again.step;
  EXPECT_TRUE(again.weights_compared);
  SessionStart other = start_in(folder, 60);
  Session free(other);
  free.join();
  EXPECT_EQ(free.latest()->last.results.ce, session.latest()->last.results.ce);
  EXPECT_EQ(free.latest()->eval.loss, session.latest()->eval.loss);
}

// It would wait 1,000 s for its second step.
TEST(Session, CommandsAreTakenWhileAStepLimitHoldsTheNextStep) {
  Folder folder;
  SessionStart start = start_in(folder, 10);
  start.config.train.max_steps_per_s = 1e-3;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 1; }));
  ASSERT_TRUE(until_done(session, session.post(PauseCommand{})));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->step, 1);
  ASSERT_TRUE(until_done(session, session.post(ResumeCommand{})));
  EXPECT_EQ(session.latest()->step, 1);
  ASSERT_TRUE(until_done(session, session.post(EditCommand{"train.max_steps_per_s", "0"})));
  EXPECT_EQ(session.latest()->last_refusal, "");
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished);
}

}  // namespace
}  // namespace comera
