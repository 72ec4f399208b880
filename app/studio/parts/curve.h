// One metric over steps: every point is kept, and what is drawn is found in time that depends on the pixels, not on
// the points. Plain data; knows nothing of drawing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/rising.h"

namespace comera::studio {

// Points by rising x; even steps take no memory, and values that came whole are shared with whoever gave them until one of
// both changes. A pyramid over blocks of 32, 1024, ... points remembers where the smallest and the largest value
// of each block are. Values that are not finite are kept apart from the extremes: see gaps().
class Curve {
 public:
  // A point at or before the last x replaces all points from x on: a rolled-back run writes its steps again.
  void append(double x, double y);
  // All points at once, as many x as y; those that are there already are the first of them.
  void share(const Rising<int64_t>& x, std::shared_ptr<std::vector<double>> y);
  // Releases shared values, so that their owner can append without a copy. share() restores them; the curve must not be
  // read until then.
  void let_go() { y_ = nothing(); }
  void reserve(size_t points);  // so many will come
  void clear();
  void cut_after(double x);  // what came later is forgotten

  bool empty() const { return x_.empty(); }
  size_t size() const { return x_.size(); }
  const Rising<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_ ? *y_ : *nothing(); }
  double last() const { return y_->back(); }
  // The value at the nearest point at or before x; NaN before the first.
  double at(double x) const;
  // x of the values that are NaN or infinite.
  const std::vector<double>& gaps() const { return gaps_; }
  // Grows with each change that is not a mere append.
  uint64_t rewrites() const { return rewrites_; }

  // What a line through all points looks like in `columns` pixel columns between two x: per column its first, smallest,
  // largest and last point, in their order, so no spike is lost. One point beyond each side, so that the line leaves
  // the picture. With few points they are all given as they are. Returns how many points and blocks were compared: the
  // pixels decide, not the points.
  size_t envelope(double x_low, double x_high, int columns, std::vector<double>& x, std::vector<double>& y) const;
  // Smallest and largest finite value between two x; false when there is none.
  bool extremes(double x_low, double x_high, double& low, double& high) const;
  // How many finite points between two x lie below `low` or above `high`. Stops counting at `most`; blocks that lie
  // inside are not looked into.
  size_t outside(double x_low, double x_high, double low, double high, size_t most) const;

 private:
  static constexpr size_t kBlock = 32;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Extreme {
    uint32_t low = kNone, high = kNone;  // indices of points
    double low_y = 0, high_y = 0;        // and their values, so that looking for them stays in the pyramid
  };
  std::vector<double>& own_y();  // to be changed: not what somebody else has too
  void truncate(size_t size);
  void add_to_pyramid(size_t i);  // the newest point of those that count
  static const std::shared_ptr<std::vector<double>>& nothing();
  static void merge(Extreme& into, const Extreme& other);
  void merge_point(Extreme& into, size_t i) const;
  Extreme extremes_of(size_t begin, size_t end, size_t& compared) const;
  size_t first_not_before(double x) const;
  size_t first_not_before(double x, size_t guess) const;

  Rising<double> x_;
  std::shared_ptr<std::vector<double>> y_ = nothing();
  std::vector<double> gaps_;
  std::vector<std::vector<Extreme>> levels_;  // level k: one entry for each full block of 32^(k+1) points
  uint64_t rewrites_ = 0;
};

// ema: exponential moving average without the bias of its start. mean: of the last points. gauss: of the points on both
// sides, weighted by a Gaussian (three boxes in a row); its last points change while new ones come.
enum class Smoothing { ema, mean, gauss };
inline constexpr int kSmoothings = 3;
// How many points count for a weight of the past: as many as let the mean lag behind like the exponential average.
int64_t points_of(double weight);

// A curve made smooth, computed on every point as they come. Points that are not finite are left out: one bad step must
// not end the line.
class Smoothed {
 public:
  // `weight` of the past: 0 = as it is, near 1 = very smooth. Takes at most `most` points, so that a frame does not
  // wait for millions of them; returns how many it took. All are taken when done().
  size_t update(const Curve& source, double weight, Smoothing kind = Smoothing::ema, size_t most = SIZE_MAX);
  bool done() const { return of_last().done; }
  // Of the last update. With the weight before until all points have the new one, so that the line does not vanish.
  const Curve& curve() const { return of_last().before.empty() ? of_last().curve : of_last().before; }

 private:
  struct State {
    Curve curve, before;
    std::vector<double> x, y;  // the finite points of the source; not of the exponential average
    double weight = -1, sum = 0, norm = 0;
    size_t used = 0;  // points of the source
    uint64_t rewrites = 0;
    bool done = true;
  };
  const State& of_last() const { return states_[static_cast<size_t>(kind_)]; }
  static void add_ema(State& state, double x, double y);
  static void add_mean(State& state, double x, double y);
  static void redo_gauss(State& state, size_t from);
  State states_[kSmoothings];  // each kind has its own: two plots may look at a curve differently
  Smoothing kind_ = Smoothing::ema;
};

// Sum of a curve up to each of its points, e.g. the time a run has trained; values that are not finite count as 0.
class RunningSum {
 public:
  void update(const Curve& source);
  const Curve& curve() const { return curve_; }

 private:
  Curve curve_;
  double sum_ = 0;
  uint64_t rewrites_ = 0;
};

// How many a second, of a curve of milliseconds each; no value where they are 0 or not finite.
class PerSecond {
 public:
  // Takes at most `most` points that are new; returns how many. All are taken when there are as many as in the source.
  size_t update(const Curve& ms, size_t most = SIZE_MAX);
  const Curve& curve() const { return curve_; }

 private:
  Curve curve_;
  uint64_t rewrites_ = 0;
};

// Maps steps of a run to an axis of another unit: by a factor, or by a rising curve over steps.
struct StepAxis {
  const Curve* curve = nullptr;  // null = the steps themselves
  double scale = 1;
  double origin = 0;             // of the curve's values: is 0 on the axis
  double at(double step) const;  // NaN when the curve is empty; beyond its ends it holds
  double step(double at) const;  // the inverse, not rounded; a step beyond the curve's ends where `at` is beyond them
  // The same for the ends of what is visible: beyond the curve's ends the axis goes on evenly.
  double along(double step) const;
  double step_along(double at) const;
};

}  // namespace comera::studio
