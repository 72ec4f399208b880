#include "app/studio/parts/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace comera::studio {

const std::shared_ptr<std::vector<double>>& Curve::nothing() {
  static const auto kNothing = std::make_shared<std::vector<double>>();
  return kNothing;
}

std::vector<double>& Curve::own_y() {
  if (y_.use_count() != 1) y_ = std::make_shared<std::vector<double>>(y());
  return *y_;
}

void Curve::append(double x, double y) {
  if (!x_.empty() && x <= x_.back()) truncate(first_not_before(x));
  std::vector<double>& values = own_y();
  x_.push_back(x);
  values.push_back(y);
  add_to_pyramid(values.size() - 1);
}

void Curve::share(const Rising<int64_t>& x, std::shared_ptr<std::vector<double>> y) {
  y_ = std::move(y);
  for (size_t i = x_.size(); i < x.size(); ++i) {
    x_.push_back(static_cast<double>(x[i]));
    add_to_pyramid(i);
  }
}

// Each full block adds its extremes to the pyramid, computed from the level below.
void Curve::add_to_pyramid(size_t i) {
  if (!std::isfinite((*y_)[i])) gaps_.push_back(x_[i]);
  const size_t size = i + 1;
  size_t block = kBlock;
  for (size_t level = 0; size % block == 0; ++level, block *= kBlock) {
    if (levels_.size() == level) levels_.emplace_back();
    Extreme extreme;
    if (level == 0) {
      for (size_t k = size - kBlock; k < size; ++k) merge_point(extreme, k);
    } else {
      const std::vector<Extreme>& below = levels_[level - 1];
      for (size_t k = below.size() - kBlock; k < below.size(); ++k) merge(extreme, below[k]);
    }
    levels_[level].push_back(extreme);
  }
}

void Curve::reserve(size_t points) { own_y().reserve(points); }

void Curve::clear() { truncate(0); }

void Curve::cut_after(double x) { truncate(static_cast<size_t>(std::upper_bound(x_.begin(), x_.end(), x) - x_.begin())); }

void Curve::truncate(size_t size) {
  if (size == x_.size()) return;
  const double from = x_[size];
  x_.resize(size);
  if (size == 0)
    y_ = nothing();
  else
    own_y().resize(size);
  gaps_.erase(std::lower_bound(gaps_.begin(), gaps_.end(), from), gaps_.end());
  size_t block = kBlock;
  for (std::vector<Extreme>& level : levels_) {
    level.resize(size / block);
    block *= kBlock;
  }
  ++rewrites_;
}

double Curve::at(double x) const {
  const auto after = std::upper_bound(x_.begin(), x_.end(), x);
  if (after == x_.begin()) return std::numeric_limits<double>::quiet_NaN();
  return (*y_)[static_cast<size_t>(after - x_.begin()) - 1];
}

void Curve::merge(Extreme& into, const Extreme& other) {
  if (other.low == kNone) return;
  if (into.low == kNone || other.low_y < into.low_y) {
    into.low = other.low;
    into.low_y = other.low_y;
  }
  if (into.high == kNone || other.high_y > into.high_y) {
    into.high = other.high;
    into.high_y = other.high_y;
  }
}

void Curve::merge_point(Extreme& into, size_t i) const {
  const auto index = static_cast<uint32_t>(i);
  if (const double y = (*y_)[i]; std::isfinite(y)) merge(into, {index, index, y, y});
}

Curve::Extreme Curve::extremes_of(size_t begin, size_t end, size_t& compared) const {
  Extreme found;
  while (begin < end) {
    size_t block = 1, level = 0;  // largest block of the pyramid that begins here and fits
    while (level < levels_.size() && begin % (block * kBlock) == 0 && begin + block * kBlock <= end) {
      block *= kBlock;
      ++level;
    }
    if (level == 0) {
      merge_point(found, begin);
    } else {
      merge(found, levels_[level - 1][begin / block]);
    }
    begin += block;
    ++compared;
  }
  return found;
}

size_t Curve::first_not_before(double x) const { return static_cast<size_t>(std::lower_bound(x_.begin(), x_.end(), x) - x_.begin()); }

// The same by a search that widens from a guess, usually a few steps away.
size_t Curve::first_not_before(double x, size_t guess) const {
  size_t low = std::min(guess, x_.size()), high = low, step = 1;
  while (low > 0 && x_[low - 1] >= x) {
    high = low - 1;
    low -= std::min(low, step);
    step *= 2;
  }
  for (step = 1; high < x_.size() && x_[high] < x; step *= 2) {
    low = high + 1;
    high = std::min(x_.size(), high + step);
  }
  return static_cast<size_t>(
      std::lower_bound(x_.begin() + static_cast<std::ptrdiff_t>(low), x_.begin() + static_cast<std::ptrdiff_t>(high), x) - x_.begin());
}

bool Curve::extremes(double x_low, double x_high, double& low, double& high) const {
  const size_t begin = first_not_before(x_low);
  const auto end = static_cast<size_t>(std::upper_bound(x_.begin(), x_.end(), x_high) - x_.begin());
  size_t compared = 0;
  const Extreme found = extremes_of(begin, end, compared);
  if (found.low == kNone) return false;
  low = found.low_y;
  high = found.high_y;
  return true;
}

size_t Curve::envelope(double x_low, double x_high, int columns, std::vector<double>& x, std::vector<double>& y) const {
  size_t compared = 0;
  x.clear();
  y.clear();
  if (x_.empty() || columns < 1 || !(x_high > x_low)) return 0;
  const auto add = [&](size_t i) {
    x.push_back(x_[i]);
    y.push_back((*y_)[i]);
  };
  const size_t begin = first_not_before(x_low);
  const auto end = static_cast<size_t>(std::upper_bound(x_.begin(), x_.end(), x_high) - x_.begin());
  if (begin > 0) add(begin - 1);
  if (end <= begin || end - begin <= 4 * static_cast<size_t>(columns)) {
    for (size_t i = begin; i < end; ++i) add(i);
  } else {
    size_t from = begin, width = (end - begin) / static_cast<size_t>(columns);  // width of a column, in points
    for (int column = 0; column < columns && from < end; ++column) {
      const double edge = x_low + (x_high - x_low) * (column + 1) / columns;
      const size_t to = column + 1 == columns ? end : std::min(end, first_not_before(edge, from + width));
      if (to <= from) continue;
      width = to - from;
      const Extreme extreme = extremes_of(from, to, compared);
      size_t points[4] = {from, from, from, to - 1};
      if (extreme.low != kNone) {
        points[1] = std::min(extreme.low, extreme.high);
        points[2] = std::max(extreme.low, extreme.high);
      }
      for (size_t i = 0; i < 4; ++i)
        if (i == 0 || points[i] > points[i - 1]) add(points[i]);
      from = to;
    }
  }
  if (end < x_.size()) add(end);
  return compared;
}

size_t Curve::outside(double x_low, double x_high, double low, double high, size_t most) const {
  size_t begin = first_not_before(x_low), count = 0;
  const auto end = static_cast<size_t>(std::upper_bound(x_.begin(), x_.end(), x_high) - x_.begin());
  while (begin < end && count < most) {
    // The largest block of the pyramid that begins here, fits, and has no value outside [low, high].
    size_t step = 1;
    for (size_t level = 0, block = kBlock; level < levels_.size() && begin % block == 0 && begin + block <= end; ++level, block *= kBlock) {
      const Extreme& extreme = levels_[level][begin / block];
      if (extreme.low != kNone && (extreme.low_y < low || extreme.high_y > high)) break;
      step = block;
    }
    if (const double y = (*y_)[begin]; step == 1 && std::isfinite(y)) count += y < low || y > high;
    begin += step;
  }
  return count;
}

int64_t points_of(double weight) { return std::max<int64_t>(1, std::llround(2 / (1 - weight) - 1)); }

void Smoothed::add_ema(State& state, double x, double y) {
  state.sum = state.weight * state.sum + (1 - state.weight) * y;
  state.norm = state.weight * state.norm + (1 - state.weight);
  state.curve.append(x, state.norm > 0 ? state.sum / state.norm : y);
}

void Smoothed::add_mean(State& state, double x, double y) {
  const auto window = static_cast<size_t>(points_of(state.weight));
  state.x.push_back(x);
  state.y.push_back(y);
  state.sum += y;
  if (state.y.size() > window) state.sum -= state.y[state.y.size() - 1 - window];
  state.curve.append(x, state.sum / static_cast<double>(std::min(window, state.y.size())));
}

// Recomputes the output from point `from` on and shortly before it, since later points also count.
void Smoothed::redo_gauss(State& state, size_t from) {
  constexpr size_t kPasses = 3;
  // Three boxes of width w have together a variance of 3 (w^2 - 1) / 12; w is chosen for the variance of a mean over points_of().
  const double width = static_cast<double>(points_of(state.weight)) / std::sqrt(3.0);
  const auto half = static_cast<size_t>(std::llround(std::max(0.0, (width - 1) / 2)));
  const size_t count = state.y.size(), first = from > 2 * kPasses * half ? from - 2 * kPasses * half : 0;
  const size_t begin = from > kPasses * half ? from - kPasses * half : 0;  // outputs change from here on
  std::vector<double> values(state.y.begin() + static_cast<std::ptrdiff_t>(first), state.y.end()), next(values.size());
  for (size_t pass = 0; pass < kPasses; ++pass) {
    double sum = 0;
    size_t low = 0, high = 0;  // first point of the box, and the point after its last
    for (size_t i = 0; i < values.size(); ++i) {
      for (; high < std::min(values.size(), i + half + 1); ++high) sum += values[high];
      for (; low + half < i; ++low) sum -= values[low];
      next[i] = sum / static_cast<double>(high - low);
    }
    values.swap(next);
  }
  for (size_t i = begin; i < count; ++i) state.curve.append(state.x[i], values[i - first]);
}

size_t Smoothed::update(const Curve& source, double weight, Smoothing kind, size_t most) {
  kind_ = kind;
  State& state = states_[static_cast<size_t>(kind)];
  const bool rewritten = source.rewrites() != state.rewrites || source.size() < state.used;
  if (weight != state.weight || rewritten) {
    Curve before;
    if (!rewritten)
      before = state.done ? std::move(state.curve) : std::move(state.before);  // after a rewrite the old values are no longer correct
    state = {};
    state.before = std::move(before);
    state.weight = weight;
    state.rewrites = source.rewrites();
  }
  if (state.used == 0) state.curve.reserve(source.size());
  const size_t end = source.size() - state.used > most ? state.used + most : source.size(), begin = state.used, known = state.y.size();
  for (; state.used < end; ++state.used) {
    const double x = source.x()[state.used], y = source.y()[state.used];
    if (!std::isfinite(y)) continue;
    if (kind == Smoothing::ema) {
      add_ema(state, x, y);
    } else if (kind == Smoothing::mean) {
      add_mean(state, x, y);
    } else {
      state.x.push_back(x);
      state.y.push_back(y);
    }
  }
  if (kind == Smoothing::gauss && state.y.size() > known) redo_gauss(state, known);
  state.done = state.used == source.size();
  if (state.done && !state.before.empty()) state.before = {};
  return end - begin;
}

void RunningSum::update(const Curve& source) {
  if (source.rewrites() != rewrites_ || source.size() < curve_.size()) {
    curve_.clear();
    sum_ = 0;
    rewrites_ = source.rewrites();
  }
  for (size_t i = curve_.size(); i < source.size(); ++i) {
    if (std::isfinite(source.y()[i])) sum_ += source.y()[i];
    curve_.append(source.x()[i], sum_);
  }
}

size_t PerSecond::update(const Curve& ms, size_t most) {
  if (ms.rewrites() != rewrites_ || ms.size() < curve_.size()) {
    curve_.clear();
    rewrites_ = ms.rewrites();
  }
  const size_t before = curve_.size(), end = std::min(ms.size(), before + std::min(most, ms.size() - before));
  for (size_t i = before; i < end; ++i) {
    const double each = ms.y()[i];
    curve_.append(ms.x()[i], each > 0 ? 1000 / each : std::numeric_limits<double>::quiet_NaN());
  }
  return end - before;
}

namespace {

// Linear interpolation of `to` between the neighbours of `value` in ascending `from`; NaN outside of its range.
template <class From, class To>
double between(const From& from, const To& to, double value) {
  const auto after = std::upper_bound(from.begin(), from.end(), value);
  if (after == from.begin()) return std::numeric_limits<double>::quiet_NaN();
  const auto i = static_cast<size_t>(after - from.begin()) - 1;
  if (i + 1 == from.size()) return value > from[i] ? std::numeric_limits<double>::quiet_NaN() : to[i];
  return to[i] + (to[i + 1] - to[i]) * (value - from[i]) / (from[i + 1] - from[i]);
}

}  // namespace

double StepAxis::at(double step) const {
  if (!curve) return step * scale;
  if (curve->empty()) return std::numeric_limits<double>::quiet_NaN();
  if (step <= curve->x().front()) return (curve->y().front() - origin) * scale;
  if (step >= curve->x().back()) return (curve->last() - origin) * scale;
  return (between(curve->x(), curve->y(), step) - origin) * scale;
}

double StepAxis::step(double at) const {
  if (!curve) return at / scale;
  if (curve->empty()) return std::numeric_limits<double>::quiet_NaN();
  at = at / scale + origin;
  if (at < curve->y().front()) return curve->x().front() - 1;
  if (at > curve->last()) return curve->x().back() + 1;
  return between(curve->y(), curve->x(), at);
}

namespace {

// Mean slope of a curve, to extrapolate beyond its ends.
double slope_of(const Curve& curve) {
  const double width = curve.x().back() - curve.x().front(), height = curve.last() - curve.y().front();
  return width > 0 && height > 0 ? height / width : 1;
}

}  // namespace

double StepAxis::along(double step) const {
  if (!curve || curve->empty()) return step * scale;
  const double first = curve->x().front(), last = curve->x().back();
  if (step < first) return (curve->y().front() - origin + (step - first) * slope_of(*curve)) * scale;
  if (step > last) return (curve->last() - origin + (step - last) * slope_of(*curve)) * scale;
  return at(step);
}

double StepAxis::step_along(double at) const {
  if (!curve || curve->empty()) return at / scale;
  const double value = at / scale + origin;
  if (value < curve->y().front()) return curve->x().front() + (value - curve->y().front()) / slope_of(*curve);
  if (value > curve->last()) return curve->x().back() + (value - curve->last()) / slope_of(*curve);
  const double step_there = step(at);
  return std::isfinite(step_there) ? step_there : curve->x().back();
}

}  // namespace comera::studio
