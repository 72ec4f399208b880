// The clock that plays a run: it stands while nothing was trained.
#include "app/studio/shown_run/play_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace comera::studio {
namespace {

// The axis of time leaves out where nothing was trained, and says for how long that was.
TEST(PlayClock, StandsWhileNothingIsTrained) {
  Curve wall, step_ms;
  // Ten steps of 0.1 s, a pause of a minute, ten more with an evaluation of 2 s between two of them.
  double now = 1e9;
  for (int step = 1; step <= 20; ++step) {
    now += 0.1;
    if (step == 11) now += 60;
    if (step == 16) now += 2;
    wall.append(step, now);
    step_ms.append(step, 100);
  }
  PlayClock clock;
  clock.update(wall, step_ms);
  EXPECT_NEAR(clock.at(10), 0.9, 1e-5);
  EXPECT_NEAR(clock.at(11), 1.0, 1e-5);
  EXPECT_NEAR(clock.at(20), 1.9 + 2, 1e-5);
  ASSERT_EQ(clock.gaps().size(), 1u);
  EXPECT_EQ(clock.gaps()[0].step, 11);
  EXPECT_NEAR(clock.gaps()[0].seconds, 60, 1e-5);
  EXPECT_EQ(clock.step(0.95), 10);
  EXPECT_EQ(clock.step(-1), 1);
  EXPECT_EQ(clock.step(99), 20);
  EXPECT_NEAR(clock.between(11, 16), 2.5, 1e-5);
  // Point by point it is the same, and after a resume that took steps back.
  PlayClock slow;
  Curve some_wall, some_ms;
  for (size_t i = 0; i < wall.size(); ++i) {
    some_wall.append(wall.x()[i], wall.y()[i]);
    some_ms.append(step_ms.x()[i], step_ms.y()[i]);
    slow.update(some_wall, some_ms);
  }
  EXPECT_EQ(slow.seconds().y(), clock.seconds().y());
  EXPECT_EQ(slow.gaps().size(), 1u);
  PlayClock pieces;  // of seven steps a frame
  EXPECT_FALSE(pieces.update(wall, step_ms, 7));
  EXPECT_EQ(pieces.seconds().size(), 7u);
  EXPECT_FALSE(pieces.update(wall, step_ms, 7));
  EXPECT_TRUE(pieces.update(wall, step_ms, 7));
  EXPECT_EQ(pieces.seconds().y(), clock.seconds().y());
  EXPECT_EQ(pieces.gaps().size(), 1u);
  wall.cut_after(5);
  step_ms.cut_after(5);
  wall.append(6, now + 3600);
  step_ms.append(6, 100);
  clock.update(wall, step_ms);
  EXPECT_EQ(clock.seconds().size(), 6u);
  ASSERT_EQ(clock.gaps().size(), 1u);
  EXPECT_EQ(clock.gaps()[0].step, 6);
}

TEST(PlayClock, SlowStepsAreNoGapsAndWhatIsNotKnownStillPlays) {
  Curve wall, step_ms;
  for (int step = 1; step <= 3; ++step) {
    wall.append(step, 1e9 + 20 * step);
    step_ms.append(step, 20'000);
  }
  PlayClock clock;
  clock.update(wall, step_ms);
  EXPECT_TRUE(clock.gaps().empty());
  EXPECT_NEAR(clock.at(3), 40, 1e-6);
  PlayClock no_times;  // imported: no clock, or no step times
  no_times.update({}, step_ms);
  EXPECT_NEAR(no_times.at(3), 40, 1e-6);
  PlayClock no_steps;
  no_steps.update(wall, {});
  EXPECT_EQ(no_steps.gaps().size(), 2u);
  PlayClock nothing;
  nothing.update({}, {});
  EXPECT_GT(nothing.between(1, 2), 0);
}

}  // namespace
}  // namespace comera::studio
