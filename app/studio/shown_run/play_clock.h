// Replay clock: seconds of training since the first step. It stops during long breaks (pauses, or the time before a resume), which are
// stored as gaps.
#pragma once
#include "app/studio/parts/curve.h"

namespace comera::studio {

class PlayClock {
 public:
  struct Gap {
    double step = 0;  // first step after the gap
    double seconds = 0;
  };
  // A longer break between steps is a gap. The duration of a step itself does not count.
  static constexpr double kLongestPause = 5;  // seconds

  // `wall`: completion times of the steps; `step_ms`: their durations. If one is missing for a step, the other is used; if both are, the
  // step takes kUnknownStep seconds. Processes at most `most` steps, so that a frame does not wait for millions of them; true when
  // complete.
  bool update(const Curve& wall, const Curve& step_ms, size_t most = SIZE_MAX);
  const Curve& seconds() const { return seconds_; }  // over steps
  const std::vector<Gap>& gaps() const { return gaps_; }
  double at(double step) const;                  // 0 before the first step; constant after the last
  double step(double second) const;              // last step completed by then
  double between(double from, double to) const;  // in seconds; kUnknownStep per step if no times are known

 private:
  static constexpr double kUnknownStep = 0.1;
  Curve seconds_;
  std::vector<Gap> gaps_;
  uint64_t wall_rewrites_ = 0, step_rewrites_ = 0;
};

}  // namespace comera::studio
