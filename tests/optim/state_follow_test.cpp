// States of a projection under another rank.
#include "core/optim/state_follow.h"

#include <gtest/gtest.h>

#include <cmath>

namespace comera::test {
namespace {

StateSpec spec(const Shape& shape, unsigned rank_axes, StateSpec::Follows follows) {
  return {.name = "s", .shape = shape, .rank_axes = rank_axes, .follows = follows};
}

std::vector<double> follow(const StateSpec& before, const std::vector<double>& values, const Shape& shape) {
  StateSpec now = before;
  now.shape = shape;
  return followed({before, values}, now, 7).values;
}

TEST(StateFollows, TheFirstEntriesStayAndNewOnesAreZeroOrTheMean) {
  const StateSpec moments = spec({2, 3}, 2, StateSpec::keeps);
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(follow(moments, values, {2, 2}), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(follow(moments, values, {2, 4}), (std::vector<double>{1, 2, 3, 0, 4, 5, 6, 0}));
  EXPECT_EQ(follow(spec({2, 3}, 2, StateSpec::keeps_and_mean), values, {2, 4}), (std::vector<double>{1, 2, 3, 3.5, 4, 5, 6, 3.5}));
  EXPECT_EQ(follow(spec({3, 2}, 1, StateSpec::keeps), values, {1, 2}), (std::vector<double>{1, 2}));
}

TEST(StateFollows, BothAxesOfATwoSidedProjection) {
  EXPECT_EQ(follow(spec({2, 2}, 3, StateSpec::keeps), {1, 2, 3, 4}, {3, 3}), (std::vector<double>{1, 2, 0, 3, 4, 0, 0, 0, 0}));
  EXPECT_EQ(follow(spec({2, 2}, 3, StateSpec::keeps), {1, 2, 3, 4}, {1, 1}), (std::vector<double>{1}));
}

// The expected mean square of a gradient in draws of variance 1 / rank is its squared norm over the rank.
TEST(StateFollows, MeanSquaresInRandomProjectionsKeepTheirSum) {
  EXPECT_EQ(follow(spec({2, 2}, 2, StateSpec::averages_all), {1, 3, 5, 7}, {2, 4}), (std::vector<double>{1, 1, 1, 1, 3, 3, 3, 3}));
  EXPECT_EQ(follow(spec({2, 2}, 2, StateSpec::averages_all), {1, 3, 5, 7}, {2, 1}), (std::vector<double>{4, 12}));
}

TEST(StateFollows, NewDirectionsAreAtRightAnglesOfLengthOne) {
  for (const bool rows : {true, false}) {
    const int64_t width = 9, before = 2, now = 9;
    std::vector<double> values(static_cast<size_t>(before * width));
    const auto at = [&](const std::vector<double>& of, int64_t count, int64_t k, int64_t i) {
      return of[static_cast<size_t>(rows ? k * width + i : i * count + k)];
    };
    for (int64_t i = 0; i < width; ++i)  // two orthogonal directions, of lengths 1 and 2
      for (int64_t k = 0; k < before; ++k)
        values[static_cast<size_t>(rows ? k * width + i : i * before + k)] = i == k ? 0.6 * (k + 1) : i == k + 2 ? 0.8 * (k + 1) : 0;
    const Shape from = rows ? Shape{before, width} : Shape{width, before}, to = rows ? Shape{now, width} : Shape{width, now};
    const std::vector<double> out = follow(spec(from, rows ? 1u : 2u, StateSpec::keeps_and_completes), values, to);
    for (int64_t a = 0; a < now; ++a)
      for (int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < width; ++i) dot += at(out, now, a, i) * at(out, now, b, i);
        EXPECT_NEAR(dot, a != b ? 0 : a == 1 ? 4 : 1, 1e-12) << a << " " << b;
      }
    for (int64_t k = 0; k < before; ++k)
      for (int64_t i = 0; i < width; ++i) EXPECT_EQ(at(out, now, k, i), at(values, before, k, i));
  }
}

TEST(StateFollows, OthersBeginAnew) {
  const std::vector<double> zeros = {0, 0, 0, 0};
  EXPECT_EQ(follow(spec({1, 2}, 1, StateSpec::restarts), {1, 2}, {2, 2}), zeros);
  EXPECT_EQ(follow(spec({1, 2}, 0, StateSpec::keeps), {1, 2}, {2, 2}), zeros) << "another axis differs";
  EXPECT_EQ(follow(spec({1, 2}, 1, StateSpec::keeps_and_completes), {0, 0}, {2, 2}), zeros) << "before the first refresh";
  StateSpec before = spec({1, 2}, 1, StateSpec::restarts), now = before;
  before.drawn_every = 5;
  now.drawn_every = 6;
  EXPECT_EQ(followed({before, {1, 2}}, now, 7).values, (std::vector<double>{0, 0})) << "in another random projection";
}

}  // namespace
}  // namespace comera::test
