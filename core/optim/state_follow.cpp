#include "core/optim/state_follow.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/draw.h"

namespace comera {
namespace {

// A state as (before, length, after) around one of its axes, row by row.
struct Around {
  int64_t before = 1, length = 1, after = 1;
  Around(const Shape& shape, int axis) : length(shape[axis]) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? before : after) *= i == axis ? 1 : shape[i];
  }
  size_t at(int64_t i, int64_t k, int64_t j) const { return static_cast<size_t>((i * length + k) * after + j); }
};

Shape with_length(const Shape& shape, int axis, int64_t length) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(i == axis ? length : shape[i]);
  return out;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(std::max<size_t>(1, values.size()));
}

// The first entries stay, new ones are `fill`.
std::vector<double> kept(const std::vector<double>& values, const Shape& shape, int axis, int64_t length, double fill) {
  const Around from(shape, axis), to(with_length(shape, axis, length), axis);
  std::vector<double> out(static_cast<size_t>(to.before * to.length * to.after), fill);
  for (int64_t i = 0; i < to.before; ++i)
    for (int64_t k = 0; k < std::min(from.length, to.length); ++k)
      for (int64_t j = 0; j < to.after; ++j) out[to.at(i, k, j)] = values[from.at(i, k, j)];
  return out;
}

// Mean squares in draws of variance 1 / rank, which are smaller by the ratio of ranks.
std::vector<double> averaged(const std::vector<double>& values, const Shape& shape, int axis, int64_t length) {
  const Around from(shape, axis), to(with_length(shape, axis, length), axis);
  std::vector<double> out(static_cast<size_t>(to.before * to.length * to.after));
  for (int64_t i = 0; i < to.before; ++i)
    for (int64_t j = 0; j < to.after; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < from.length; ++k) sum += values[from.at(i, k, j)];
      for (int64_t k = 0; k < to.length; ++k) out[to.at(i, k, j)] = sum / static_cast<double>(to.length);
    }
  return out;
}

// The vectors of a projection lie along the other axis of a matrix; new ones are drawn, at right angles to all before them, of length 1.
void complete(std::vector<double>& values, const Shape& shape, int axis, int64_t first_new, uint32_t site) {
  const int64_t count = shape[axis], width = shape[1 - axis];
  const auto entry = [&](int64_t vector, int64_t i) -> double& {
    return values[static_cast<size_t>(axis == 0 ? vector * width + i : i * count + vector)];
  };
  const auto dot = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += entry(a, i) * entry(b, i);
    return sum;
  };
  for (int64_t vector = first_new; vector < count; ++vector) {
    const std::vector<double> draws = draw_normals({.seed = static_cast<uint64_t>(vector), .site = site}, static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i) entry(vector, i) = draws[static_cast<size_t>(i)];
    for (int pass = 0; pass < 2; ++pass)  // the second takes what rounding of the first has left
      for (int64_t other = 0; other < vector; ++other) {
        const double square = dot(other, other), share = square > 0 ? dot(vector, other) / square : 0;
        for (int64_t i = 0; i < width; ++i) entry(vector, i) -= share * entry(other, i);
      }
    const double length = std::sqrt(dot(vector, vector));
    for (int64_t i = 0; i < width; ++i) entry(vector, i) = length > 0 ? entry(vector, i) / length : 0;
  }
}

bool differ_by_rank(const StateSpec& before, const StateSpec& now) {
  if (before.rank_axes != now.rank_axes || before.shape.rank() != now.shape.rank()) return false;
  for (int axis = 0; axis < now.shape.rank(); ++axis)
    if (before.shape[axis] != now.shape[axis] && !(now.rank_axes >> axis & 1)) return false;
  return true;
}

}  // namespace

StateNumbers followed(const StateNumbers& before, const StateSpec& now, uint32_t site) {
  const bool same_draws = before.spec.drawn_every == now.drawn_every;
  if (before.spec.shape == now.shape && (same_draws || now.follows != StateSpec::restarts)) return {now, before.values};
  // Before the first refresh a projection is 0, and has no directions that new ones could be at right angles to.
  const bool empty = std::all_of(before.values.begin(), before.values.end(), [](double value) { return value == 0; });
  if (empty || now.follows == StateSpec::restarts || !differ_by_rank(before.spec, now))
    return {now, std::vector<double>(static_cast<size_t>(now.shape.count()), 0.0)};
  std::vector<double> values = before.values;
  const double fill = now.follows == StateSpec::keeps_and_mean ? mean_of(values) : 0;
  Shape shape = before.spec.shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t length = now.shape[axis], old = shape[axis];
    if (length == old) continue;
    values = now.follows == StateSpec::averages_all ? averaged(values, shape, axis, length) : kept(values, shape, axis, length, fill);
    shape = with_length(shape, axis, length);
    if (now.follows == StateSpec::keeps_and_completes) complete(values, shape, axis, old, site);
  }
  return {now, values};
}

}  // namespace comera
