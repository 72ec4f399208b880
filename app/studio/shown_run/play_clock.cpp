#include "app/studio/shown_run/play_clock.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {
namespace {

// Reads a curve at ascending x; each search starts at the last result.
class Reader {
 public:
  Reader(const Curve& curve, double from)
      : curve_(curve), at_(static_cast<size_t>(std::lower_bound(curve.x().begin(), curve.x().end(), from) - curve.x().begin())) {}
  // The value at exactly x; NaN = none.
  double exactly(double x) {
    while (at_ < curve_.size() && curve_.x()[at_] < x) ++at_;
    return at_ < curve_.size() && curve_.x()[at_] == x ? curve_.y()[at_] : NAN;
  }

 private:
  const Curve& curve_;
  size_t at_;
};

}  // namespace

bool PlayClock::update(const Curve& wall, const Curve& step_ms, size_t most) {
  if (wall.rewrites() != wall_rewrites_ || step_ms.rewrites() != step_rewrites_) {
    seconds_.clear();
    gaps_.clear();
    wall_rewrites_ = wall.rewrites();
    step_rewrites_ = step_ms.rewrites();
  }
  // The longer curve has all steps: some imported runs lack step times, others lack clock times.
  const Curve& steps = wall.size() > step_ms.size() ? wall : step_ms;
  const double done = seconds_.empty() ? -INFINITY : seconds_.x().back();
  const auto from = static_cast<size_t>(std::upper_bound(steps.x().begin(), steps.x().end(), done) - steps.x().begin());
  if (from == steps.size()) return true;
  if (seconds_.empty()) seconds_.reserve(steps.size());
  const size_t end = from + std::min(most, steps.size() - from);
  Reader times(step_ms, steps.x()[from]), clock(wall, from > 0 ? steps.x()[from - 1] : steps.x()[from]);
  double before = clock.exactly(from > 0 ? steps.x()[from - 1] : steps.x()[from]);
  for (size_t i = from; i < end; ++i) {
    const double x = steps.x()[i], took = std::max(0.0, times.exactly(x) / 1000), now = clock.exactly(x);
    const double passed = now - before, step = took > 0 ? took : kUnknownStep;
    before = now;
    if (i == 0) {
      seconds_.append(x, 0);
    } else if (passed - (took > 0 ? took : 0) > kLongestPause) {
      gaps_.push_back({x, passed - step});
      seconds_.append(x, seconds_.last() + step);
    } else {
      seconds_.append(x, seconds_.last() + (passed > (took > 0 ? took : 0) ? passed : step));
    }
  }
  return end == steps.size();
}

double PlayClock::at(double step) const {
  const double seconds = seconds_.at(step);
  return std::isfinite(seconds) ? seconds : 0;
}

double PlayClock::between(double from, double to) const { return seconds_.empty() ? (to - from) * kUnknownStep : at(to) - at(from); }

double PlayClock::step(double second) const {
  if (seconds_.empty()) return 0;
  const auto after = std::upper_bound(seconds_.y().begin(), seconds_.y().end(), second);
  return after == seconds_.y().begin() ? seconds_.x().front() : seconds_.x()[static_cast<size_t>(after - seconds_.y().begin()) - 1];
}

}  // namespace comera::studio
