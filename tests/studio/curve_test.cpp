#include "app/studio/parts/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

namespace comera::studio {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Curve noise(int points, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Curve curve;
  for (int i = 0; i < points; ++i) curve.append(i + 1, normal(random));
  return curve;
}

// Smallest, largest, first and last value of each column, the slow way.
struct Column {
  double low = 1e300, high = -1e300, first = 0, last = 0;
  bool any = false;
};
std::vector<Column> columns_of(const std::vector<double>& x, const std::vector<double>& y, double x_low, double x_high, int count) {
  std::vector<Column> columns(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < x_low || x[i] > x_high) continue;
    int at = 0;  // by the same edges
    while (at + 1 < count && x[i] >= x_low + (x_high - x_low) * (at + 1) / count) ++at;
    Column& column = columns[static_cast<size_t>(at)];
    if (!column.any) column.first = y[i];
    column.any = true;
    column.last = y[i];
    column.low = std::min(column.low, y[i]);
    column.high = std::max(column.high, y[i]);
  }
  return columns;
}

TEST(Curve, FewPointsAreGivenAsTheyAre) {
  const Curve curve = noise(100);
  std::vector<double> x, y;
  curve.envelope(0, 200, 300, x, y);
  EXPECT_EQ(x, curve.x().all());
  EXPECT_EQ(y, curve.y());
}

TEST(Curve, EnvelopeKeepsFirstLowHighLastOfEveryColumn) {
  const Curve curve = noise(50'000);
  for (const auto& [low, high, count] : {std::tuple{0.0, 50'000.0, 317}, {12'345.6, 33'333.3, 100}, {1.0, 50'000.0, 7}}) {
    std::vector<double> x, y;
    curve.envelope(low, high, count, x, y);
    EXPECT_LE(x.size(), 4u * static_cast<size_t>(count) + 2);
    EXPECT_TRUE(std::is_sorted(x.begin(), x.end()));
    const auto want = columns_of(curve.x().all(), curve.y(), low, high, count), got = columns_of(x, y, low, high, count);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(want[i].low, got[i].low) << i;
      EXPECT_EQ(want[i].high, got[i].high) << i;
      EXPECT_EQ(want[i].first, got[i].first) << i;
      EXPECT_EQ(want[i].last, got[i].last) << i;
    }
  }
}

TEST(Curve, OneSpikeAmongManyPointsIsSeenAtEveryWidth) {
  Curve curve;
  for (int i = 0; i < 1'000'000; ++i) curve.append(i, i == 654'321 ? 100 : 1);
  for (const int columns : {16, 333, 4000}) {
    std::vector<double> x, y;
    curve.envelope(-5, 2e6, columns, x, y);
    EXPECT_EQ(*std::max_element(y.begin(), y.end()), 100) << columns;
  }
}

TEST(Curve, LinesLeaveThePicture) {
  const Curve curve = noise(1000);
  std::vector<double> x, y;
  curve.envelope(400.5, 410.5, 100, x, y);
  EXPECT_EQ(x.front(), 400);
  EXPECT_EQ(x.back(), 411);
  curve.envelope(400.2, 400.8, 100, x, y);  // between two points
  EXPECT_EQ(x, (std::vector<double>{400, 401}));
}

TEST(Curve, ValuesThatAreNotFiniteAreCountedAndSkipped) {
  Curve curve;
  for (int i = 1; i <= 5000; ++i) curve.append(i, i % 1000 == 0 ? kNaN : i == 77 ? std::numeric_limits<double>::infinity() : 1.0 / i);
  EXPECT_EQ(curve.gaps(), (std::vector<double>{77, 1000, 2000, 3000, 4000, 5000}));
  double low = 0, high = 0;
  ASSERT_TRUE(curve.extremes(0, 6000, low, high));
  EXPECT_EQ(high, 1);
  EXPECT_EQ(low, 1.0 / 4999);
  EXPECT_FALSE(curve.extremes(1000, 1000, low, high));
}

TEST(Curve, AStepThatIsWrittenAgainReplacesItself) {
  Curve curve;
  for (const auto& [x, y] : {std::pair{1, 10}, {2, 20}, {2, 30}}) curve.append(x, y);
  EXPECT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve.at(2), 30);
}

TEST(Curve, ARunThatWasRolledBackWritesItsStepsAnew) {
  Curve curve = noise(5000), fresh = noise(3000);
  curve.append(3001, 7);
  fresh.append(3001, 7);
  for (int i = 3002; i <= 9000; ++i) {
    curve.append(i, std::sin(i));
    fresh.append(i, std::sin(i));
  }
  EXPECT_EQ(curve.x(), fresh.x());
  EXPECT_EQ(curve.y(), fresh.y());
  EXPECT_EQ(curve.rewrites(), 1u);
  std::vector<double> x, y, fresh_x, fresh_y;
  curve.envelope(0, 9000, 50, x, y);
  fresh.envelope(0, 9000, 50, fresh_x, fresh_y);
  EXPECT_EQ(y, fresh_y);
}

// Values that are shared grow where they are: what is drawn of them is as of a curve that has them all from the start.
TEST(Curve, SharedValuesGrowWithoutACopy) {
  const Curve fresh = noise(5000);
  const size_t known = static_cast<size_t>(std::lower_bound(fresh.x().begin(), fresh.x().end(), 3000.0) - fresh.x().begin());
  Rising<int64_t> x;
  auto y = std::make_shared<std::vector<double>>();
  const auto add = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      x.push_back(static_cast<int64_t>(fresh.x()[i]));
      y->push_back(fresh.y()[i]);
    }
  };
  add(0, known);
  Curve curve;
  curve.share(x, y);
  EXPECT_EQ(&curve.y(), y.get());
  EXPECT_EQ(y.use_count(), 2);
  curve.let_go();
  EXPECT_EQ(y.use_count(), 1) << "who gave them may add to them";
  add(known, fresh.size());
  curve.share(x, y);
  EXPECT_EQ(&curve.y(), y.get());
  EXPECT_EQ(curve.x(), fresh.x());
  EXPECT_EQ(curve.y(), fresh.y());
  EXPECT_EQ(curve.gaps(), fresh.gaps());
  EXPECT_EQ(curve.rewrites(), 0u) << "it only grew";
  std::vector<double> drawn_x, drawn_y, fresh_x, fresh_y;
  for (const int columns : {7, 50, 900}) {
    curve.envelope(0, 5000, columns, drawn_x, drawn_y);
    fresh.envelope(0, 5000, columns, fresh_x, fresh_y);
    EXPECT_EQ(drawn_x, fresh_x);
    EXPECT_EQ(drawn_y, fresh_y);
  }
  curve.append(6000, 7);  // a run that goes on here: the other one keeps what it has
  EXPECT_EQ(y->size(), fresh.size());
}

TEST(Curve, ValueAtAStep) {
  Curve curve;
  curve.append(10, 1);
  curve.append(20, 2);
  EXPECT_TRUE(std::isnan(curve.at(9)));
  EXPECT_EQ(curve.at(10), 1);
  EXPECT_EQ(curve.at(19), 1);
  EXPECT_EQ(curve.at(99), 2);
}

// A frame has 16 ms; this is one of six curves. Generous, since the machine may be busy.
TEST(Curve, TheWorkOfAPictureGoesWithItsPixels) {
  Curve curve;
  std::vector<double> x, y;
  const auto work = [&](int size) {
    for (int i = static_cast<int>(curve.size()); i < size; ++i)
      curve.append(i, static_cast<double>((static_cast<unsigned>(i) * 2654435761u) >> 8));
    size_t most = 0;
    for (int i = 0; i < 10; ++i) most = std::max(most, curve.envelope(i * 7, size - i * 13, 1000, x, y));
    return most;
  };
  const size_t less = work(100'000), more = work(10'000'000);
  // Per column at most two runs of 31 blocks on each level; a hundred times the points add one or two levels.
  EXPECT_LE(more, 1000u * 62 * 5);
  EXPECT_LE(more, 4 * less);
  EXPECT_GT(less, 1000u);
  EXPECT_EQ(x.front(), 9 * 7 - 1);  // and it is the whole picture
}

TEST(Smoothed, HasNoBiasAtItsStart) {
  Curve curve;
  for (int i = 0; i < 100; ++i) curve.append(i, 5);
  Smoothed smoothed;
  smoothed.update(curve, 0.99);
  for (double y : smoothed.curve().y()) EXPECT_NEAR(y, 5, 1e-12);
}

TEST(Smoothed, GoesOnWhereItWas) {
  Curve curve = noise(300);
  Smoothed often, once;
  often.update(curve, 0.9);
  for (int i = 301; i <= 600; ++i) {
    curve.append(i, i == 400 ? kNaN : std::cos(i));
    often.update(curve, 0.9);
  }
  once.update(curve, 0.9);
  EXPECT_EQ(often.curve().y(), once.curve().y());
  EXPECT_EQ(once.curve().size(), 599u);
  curve.append(500, 1);  // rolled back
  often.update(curve, 0.9);
  EXPECT_EQ(often.curve().x().back(), 500);
}

TEST(Smoothed, TakesNoMoreThanItIsAllowed) {
  const Curve curve = noise(1000);
  Smoothed slices, once;
  once.update(curve, 0.9);
  for (int i = 1; i <= 10; ++i) {
    EXPECT_EQ(slices.update(curve, 0.9, Smoothing::ema, 100), 100u);
    EXPECT_EQ(slices.done(), i == 10);
  }
  EXPECT_EQ(slices.update(curve, 0.9, Smoothing::ema, 100), 0u);
  EXPECT_EQ(slices.curve().y(), once.curve().y());
  // With another weight the line before stays until the new one is whole; a third one begins anew.
  EXPECT_EQ(slices.update(curve, 0.5, Smoothing::ema, 600), 600u);
  EXPECT_EQ(slices.curve().y(), once.curve().y());
  EXPECT_EQ(slices.update(curve, 0.7, Smoothing::ema, 600), 600u);
  EXPECT_EQ(slices.curve().y(), once.curve().y());
  EXPECT_EQ(slices.update(curve, 0.7, Smoothing::ema, 600), 400u);
  EXPECT_TRUE(slices.done());
  once.update(curve, 0.7);
  EXPECT_EQ(slices.curve().y(), once.curve().y());
}

TEST(RunningSum, FollowsItsCurve) {
  Curve curve;
  RunningSum sum;
  for (int i = 1; i <= 5; ++i) curve.append(i, i == 3 ? kNaN : 10 * i);
  sum.update(curve);
  EXPECT_EQ(sum.curve().y(), (std::vector<double>{10, 30, 30, 70, 120}));
  curve.append(6, 1);
  sum.update(curve);
  EXPECT_EQ(sum.curve().last(), 121);
  curve.append(2, 5);  // rolled back
  sum.update(curve);
  EXPECT_EQ(sum.curve().y(), (std::vector<double>{10, 15}));
}

TEST(StepAxis, IsItsOwnInverseAndHoldsBeyondItsEnds) {
  Curve seconds;
  for (int i = 0; i < 5; ++i) seconds.append(10 + i, i * i);
  const StepAxis axis{&seconds, 2};
  for (const double step : {10.0, 11.0, 12.5, 14.0}) EXPECT_NEAR(axis.step(axis.at(step)), step, 1e-12);
  EXPECT_EQ(axis.at(12), 8);
  EXPECT_EQ(axis.at(12.5), 13) << "half way between 4 and 9";
  EXPECT_EQ(axis.at(3), 0);
  EXPECT_EQ(axis.at(99), 32);
  EXPECT_LT(axis.step(-1), 10);
  EXPECT_GT(axis.step(33), 14);
  EXPECT_EQ(StepAxis{}.at(7), 7);
  EXPECT_EQ((StepAxis{nullptr, 16}.step(32)), 2);
}

}  // namespace
}  // namespace comera::studio
