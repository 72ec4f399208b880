// One metric over steps. Every point is kept; the time to find the points to draw depends on the number of pixels, not of points. Plain
// data, independent of drawing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/rising.h"

namespace comera::studio {

// Points by ascending x. Evenly spaced x take no memory; values from share() are shared with their owner until either side changes them. A
// pyramid over blocks of 32, 1024, ... points has the positions of the smallest and the largest value of each block. Values that are not
// finite do not count as extremes: see gaps().
class Curve {
 public:
  // A point at or before the last x replaces all points from x on: a run that was rolled back writes its steps again.
  void append(double x, double y);
  // Sets all points at once; x and y have the same length. The existing points must be the first ones of x and y.
  void share(const Rising<int64_t>& x, std::shared_ptr<std::vector<double>> y);
  // Releases shared values, so that their owner can append without a copy. Do not read the curve until share() restores them.
  void let_go() { y_ = nothing(); }
  void reserve(size_t points);  // expected number of points
  void clear();
  void cut_after(double x);  // removes points after x

  bool empty() const { return x_.empty(); }
  size_t size() const { return x_.size(); }
  const Rising<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_ ? *y_ : *nothing(); }
  double last() const { return y_->back(); }
  // The value of the last point at or before x; NaN before the first point.
  double at(double x) const;
  // x of the values that are NaN or infinite.
  const std::vector<double>& gaps() const { return gaps_; }
  // Increases with each change that is not an append.
  uint64_t rewrites() const { return rewrites_; }

  // The points to draw between x_low and x_high in `columns` pixel columns: per column its first, smallest, largest and last point in order
  // of x, so that no spike is lost; plus one point beyond each side, so that the line reaches the edges. If there are few points, all are
  // returned. Returns the number of points and blocks compared, which depends on the pixels only.
  size_t envelope(double x_low, double x_high, int columns, std::vector<double>& x, std::vector<double>& y) const;
  // Smallest and largest finite value from x_low to x_high; false if there is none.
  bool extremes(double x_low, double x_high, double& low, double& high) const;
  // Number of finite points from x_low to x_high below `low` or above `high`, at most `most`. Skips blocks of the pyramid within the range.
  size_t outside(double x_low, double x_high, double low, double high, size_t most) const;

 private:
  static constexpr size_t kBlock = 32;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Extreme {
    uint32_t low = kNone, high = kNone;  // indices of points
    double low_y = 0, high_y = 0;        // their values, so that a search reads the pyramid only
  };
  std::vector<double>& own_y();  // values for writing: copied first if they are shared
  void truncate(size_t size);
  void add_to_pyramid(size_t i);  // call for each new point, in order
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

// ema: exponential moving average with bias correction. mean: of the last points. gauss: Gaussian weights of points on both sides (three
// box filters); its last points change when new points come.
enum class Smoothing { ema, mean, gauss };
inline constexpr int kSmoothings = 3;
// Window of the mean for a weight of the past: its lag equals that of the exponential average.
int64_t points_of(double weight);

// A smoothed curve, computed incrementally from every point. Points that are not finite are skipped, so that one bad step does not end the
// line.
class Smoothed {
 public:
  // `weight` of the past: 0 = unchanged, near 1 = very smooth. Processes at most `most` points, so that a frame does not wait for millions
  // of points; returns how many. done(): all points were processed.
  size_t update(const Curve& source, double weight, Smoothing kind = Smoothing::ema, size_t most = SIZE_MAX);
  bool done() const { return of_last().done; }
  // Result of the last update. After a change of the weight it is the old curve until the new one is complete, so that the line does not
  // vanish.
  const Curve& curve() const { return of_last().before.empty() ? of_last().curve : of_last().before; }

 private:
  struct State {
    Curve curve, before;
    std::vector<double> x, y;  // finite points of the source; unused by ema
    double weight = -1, sum = 0, norm = 0;
    size_t used = 0;  // processed points of the source
    uint64_t rewrites = 0;
    bool done = true;
  };
  const State& of_last() const { return states_[static_cast<size_t>(kind_)]; }
  static void add_ema(State& state, double x, double y);
  static void add_mean(State& state, double x, double y);
  static void redo_gauss(State& state, size_t from);
  State states_[kSmoothings];  // one per kind, since two plots may smooth the same curve differently
  Smoothing kind_ = Smoothing::ema;
};

// Running sum of a curve, e.g. training time; values that are not finite count as 0.
class RunningSum {
 public:
  void update(const Curve& source);
  const Curve& curve() const { return curve_; }

 private:
  Curve curve_;
  double sum_ = 0;
  uint64_t rewrites_ = 0;
};

// Rate per second from a curve of milliseconds; NaN if these are 0 or not finite.
class PerSecond {
 public:
  // Processes at most `most` new points; returns how many. Complete when both curves have the same size.
  size_t update(const Curve& ms, size_t most = SIZE_MAX);
  const Curve& curve() const { return curve_; }

 private:
  Curve curve_;
  uint64_t rewrites_ = 0;
};

// Maps steps of a run to another axis: by a factor, or by an ascending curve over steps.
struct StepAxis {
  const Curve* curve = nullptr;  // null: steps times `scale`
  double scale = 1;
  double origin = 0;             // value of the curve at 0 of the axis
  double at(double step) const;  // NaN if the curve is empty; constant beyond its ends
  double step(double at) const;  // inverse, not rounded; beyond the curve's ends, a step outside of it
  // The same for the ends of the visible range: extrapolates beyond the curve's ends.
  double along(double step) const;
  double step_along(double at) const;
};

}  // namespace comera::studio
