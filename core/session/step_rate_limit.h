// When the next step may begin under `train.max_steps_per_s`. It knows times only, so what a run computes cannot depend on it.
#pragma once
#include <algorithm>
#include <chrono>

namespace comera {

class StepRateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Seconds from `now` until the next step may begin; 0 = at once. `limit`: steps a second, 0 = no limit.
  double wait_s(double limit, Time now) const {
    if (limit <= 0 || !any_) return 0;
    return std::max(0.0, 1 / limit - std::chrono::duration<double>(now - turn_).count());
  }
  // A step begins. One that is late by less than a period does not delay those after it, so the mean rate reaches the limit;
  // a longer delay (a pause, a slow step) is not made up for.
  void begin(double limit, Time now) {
    const auto period = std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(limit > 0 ? 1 / limit : 0));
    const Time due = turn_ + period;
    turn_ = any_ && now >= due && now - due < period ? due : now;
    any_ = true;
  }

 private:
  Time turn_{};  // of the last step
  bool any_ = false;
};

}  // namespace comera
