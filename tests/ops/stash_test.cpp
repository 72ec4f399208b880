// The int8 stash: error bound, mean, range, clamping, saved pairs.
#include <limits>

#include "core/config/method.h"
#include "core/ops/quant_math.h"
#include "tests/ops/host.h"

namespace comera::test {
namespace {

using Bytes = Array<unsigned char>;

template <class T>
class Int8 : public ::testing::Test {};
TYPED_TEST_SUITE(Int8, FloatTypes);

template <class T>
struct Stash {
  Array<T> x, used, range, back;
  Bytes codes;
  int64_t groups;
  StepScalars step;
  Stash(Array<T> x, int64_t groups) : x(x), used({groups, 2}), range({groups, 2}, T(-1)), back(x.shape), codes(x.shape), groups(groups) {
    step.seed = 99;
    step.step = 4;
  }
  void run(CpuOps& ops, double decay, uint32_t site = 17) {
    ops.int8_keep(codes, used, range, x, groups, decay, site, block_tensor(step));
    ops.int8_load(back, codes, used, groups);
  }
};

TYPED_TEST(Int8, ErrorIsUnderOneCode) {
  using T = TypeParam;
  CpuOps ops(2);
  for (int64_t groups : {1, 3, 12}) {
    auto x = uniform<T>({37, 24}, 7);
    for (int64_t i = 0; i < x.count(); ++i) x[i] = x[i] * static_cast<T>(1 + i % 24) + T(5);
    Stash<T> stash(x, groups);
    stash.run(ops, 0);
    const int64_t part = 24 / groups;
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t group = i % 24 / part;
      ASSERT_LE(std::abs(stash.back[i] - x[i]), stash.used[2 * group] / T(255) * T(1.001)) << i;
    }
    for (int64_t group = 0; group < groups; ++group) {
      T low = T(1e9), high = T(-1e9);
      for (int64_t i = 0; i < x.count(); ++i)
        if (i % 24 / part == group) {
          low = std::min(low, x[i]);
          high = std::max(high, x[i]);
        }
      EXPECT_EQ(stash.range[2 * group], high - low);
      EXPECT_EQ(stash.range[2 * group + 1], low);
    }
  }
}

// By default a range follows at once: nothing is outside of it.
TYPED_TEST(Int8, HoldsActivationsThatGrow) {
  using T = TypeParam;
  CpuOps ops(2);
  Stash<T> stash(uniform<T>({37, 24}, 7), 1);
  for (int step = 0; step < 6; ++step) {
    for (int64_t i = 0; i < stash.x.count(); ++i) stash.x[i] *= T(2);
    stash.run(ops, MesaConfig().decay);
    for (int64_t i = 0; i < stash.x.count(); ++i)
      ASSERT_LE(std::abs(stash.back[i] - stash.x[i]), stash.used[0] / T(255) * T(1.001)) << step;
  }
}

TYPED_TEST(Int8, IsRightOnAverage) {
  using T = TypeParam;
  CpuOps ops(2);
  const auto x = uniform<T>({4, 16}, 8);
  Stash<T> stash(x, 1);
  Array<double> mean(x.shape);
  const int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    stash.step.step = static_cast<uint64_t>(draw);
    stash.run(ops, 0);
    for (int64_t i = 0; i < x.count(); ++i) mean[i] += static_cast<double>(stash.back[i]) / draws;
  }
  // One draw is off by at most half a code in the root mean square; five standard errors.
  EXPECT_LT(largest_difference(mean, x), 5 * 0.5 / std::sqrt(draws) * static_cast<double>(stash.used[0]) / 255);
}

TYPED_TEST(Int8, DrawsTheProjectsRandomNumbers) {
  using T = TypeParam;
  CpuOps ops(2);
  Stash<T> stash(uniform<T>({50, 30}, 9), 3);
  stash.run(ops, 0);
  const Philox stream{99, 4, 17};
  int64_t close = 0;
  for (int64_t i = 0; i < stash.x.count(); ++i) {
    const int64_t group = i % 30 / 10;
    const double y = static_cast<double>((stash.x[i] - stash.used[2 * group + 1]) * (T(255) / stash.used[2 * group]));
    const double sum = y + static_cast<double>(uniform_half(stream.word(static_cast<uint64_t>(i))));
    if (std::abs(sum - std::round(sum)) < 1e-3)
      ++close;  // float rounding may fall to either side
    else
      ASSERT_EQ(stash.codes[i], std::floor(sum)) << i;
  }
  EXPECT_LT(close, 20);
  const auto codes = stash.codes;
  stash.run(ops, 0, 18);
  EXPECT_NE(codes.v, stash.codes.v);
}

TYPED_TEST(Int8, RangeFollowsARunningMean) {
  using T = TypeParam;
  CpuOps ops(1);
  Stash<T> stash(Array<T>({2, 2}, {0, 1, 2, 4}), 1);
  stash.run(ops, 0.9);
  EXPECT_EQ(stash.range.v, (std::vector<T>{4, 0}));
  stash.x.v = {10, 12, 14, 20};
  stash.run(ops, 0.9);
  EXPECT_NEAR(stash.range[0], 0.9 * 4 + 0.1 * 10, 1e-6);
  EXPECT_NEAR(stash.range[1], 1, 1e-6);
  EXPECT_EQ(stash.used.v, stash.range.v);
  // The lagging range ends at 5.6: everything is held at its end, nothing wraps.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(stash.codes[i], 255);
  // Another forward changes the range, not what an earlier one saved.
  const auto used = stash.used;
  const auto codes = stash.codes;
  Array<T> other({1, 2}), back({2, 2});
  Bytes other_codes({2, 2});
  ops.int8_keep(other_codes, other, stash.range, Array<T>({2, 2}, {0, 1, 2, 3}), 1, 0.9, 17, block_tensor(stash.step));
  ops.int8_load(back, codes, used, 1);
  EXPECT_EQ(back.v, stash.back.v);
}

TYPED_TEST(Int8, CodesStayInAByte) {
  using T = TypeParam;
  const T last = std::nextafter(T(1), T(0)), inf = std::numeric_limits<T>::infinity();
  EXPECT_EQ(stash_code(T(255), T(0), T(1), last), 255);  // the sum rounds to 256 in float
  EXPECT_EQ(stash_code(T(254), T(0), T(1), T(0.5)), 254);
  EXPECT_EQ(stash_code(T(-3), T(0), T(1), last), 0);
  EXPECT_EQ(stash_code(inf, T(0), T(1), T(0)), 255);
  EXPECT_EQ(stash_code(-inf, T(0), T(1), T(0)), 0);
  EXPECT_EQ(stash_code(std::numeric_limits<T>::quiet_NaN(), T(0), T(1), T(0)), 0);
}

TYPED_TEST(Int8, AConstantGroupIsKept) {
  using T = TypeParam;
  CpuOps ops(1);
  Stash<T> stash(Array<T>({3, 4}, T(2.5)), 2);
  stash.run(ops, 0.9);
  EXPECT_EQ(stash.back.v, stash.x.v);
  stash.run(ops, 0.9);
  EXPECT_EQ(stash.back.v, stash.x.v);
  Stash<T> empty(Array<T>({0, 4}), 2);
  empty.run(ops, 0.9);
  EXPECT_EQ(empty.range.v, std::vector<T>(4, T(-1)));  // nothing seen: still the first use
}

// A width of 0 is a range that was used: the next one is averaged with it, and does not take its place.
TYPED_TEST(Int8, AConstantFirstStepIsPartOfTheRunningMean) {
  using T = TypeParam;
  CpuOps ops(1);
  Stash<T> stash(Array<T>({2, 2}, T(3)), 1);
  stash.run(ops, 0.75);
  EXPECT_EQ(stash.range.v, (std::vector<T>{0, 3}));
  stash.x.v = {7, 9, 11, 15};
  stash.run(ops, 0.75);
  EXPECT_EQ(stash.range.v, (std::vector<T>{2, 4}));  // a quarter of 8; three quarters of 3 and a quarter of 7
}

TYPED_TEST(Int8, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  CpuOps one(1);
  Stash<T> first(uniform<T>({301, 93}, 10), 3);
  first.run(one, 0.9);
  for (int threads : {2, 3}) {
    CpuOps ops(threads);
    Stash<T> again(uniform<T>({301, 93}, 10), 3);
    again.run(ops, 0.9);
    EXPECT_EQ(first.codes.v, again.codes.v);
    EXPECT_TRUE(same_bits(first.used, again.used) && same_bits(first.back, again.back));
  }
}

}  // namespace
}  // namespace comera::test
