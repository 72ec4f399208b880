// Replay clock: seconds of training since the first step. The clock stops during long breaks (pauses, or the time before a
// resume), and stores them as gaps.
#pragma once
#include "app/studio/parts/curve.h"

namespace comera::studio {

class PlayClock {
 public:
  struct Gap {
    double step = 0;  // it ended with this one
    double seconds = 0;
  };
  // A pause longer than this is a gap; a step itself may take as long as it took.
  static constexpr double kLongestPause = 5;  // seconds

  // `wall`: when each step was done; `step_ms`: how long it took. A step that lacks one of them is told by the other one,
  // or counts as kUnknownStep seconds. Takes at most `most` steps, so that a frame does not wait for millions of them;
  // true when all are taken.
  bool update(const Curve& wall, const Curve& step_ms, size_t most = SIZE_MAX);
  const Curve& seconds() const { return seconds_; }  // over steps
  const std::vector<Gap>& gaps() const { return gaps_; }
  double at(double step) const;                  // 0 before the first step; holds beyond the last
  double step(double second) const;              // the last one that is done by then
  double between(double from, double to) const;  // seconds; of steps that are not known at all kUnknownStep each

 private:
  static constexpr double kUnknownStep = 0.1;
  Curve seconds_;
  std::vector<Gap> gaps_;
  uint64_t wall_rewrites_ = 0, step_rewrites_ = 0;
};

}  // namespace comera::studio
