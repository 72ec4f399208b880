// Codes in groups with a scale and a zero each (METHODS.md 7).
#include "core/ops/group_codes.h"

#include <limits>
#include <random>

#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
struct Coded {
  Array<unsigned char> codes;
  Array<T> scale, zero;
};

template <class T>
class GroupCodesOf : public ::testing::Test {
 protected:
  using Numbers = Array<T>;
  Coded<T> quantise(const Numbers& x, const GroupCodes& how, uint32_t site = 0, uint64_t step = 1) {
    StepScalars scalars;
    scalars.step = step;
    const int64_t groups = how.groups(x.count());
    Coded<T> out{Array<unsigned char>({how.bytes(x.count())}), Numbers({groups}), Numbers({groups})};
    ops.run(op::GroupQuantise{out.codes, out.scale, out.zero, x, how, site, site != 0 ? block_tensor(scalars) : Tensor()});
    return out;
  }
  Numbers dequantise(const Coded<T>& from, const Shape& shape, const GroupCodes& how) {
    Numbers x(shape);
    ops.run(op::GroupDequantise{x, from.codes, from.scale, from.zero, how});
    return x;
  }
  static Numbers gaussian(const Shape& shape, uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal(0, 0.02);
    Numbers x(shape);
    for (T& value : x.v) value = static_cast<T>(normal(generator));
    return x;
  }
  CpuOps ops{2};
};
TYPED_TEST_SUITE(GroupCodesOf, FloatTypes);

TYPED_TEST(GroupCodesOf, NumbersComeBackToWithinHalfAStep) {
  for (const GroupCodes& how : {GroupCodes{8}, GroupCodes{4}, GroupCodes{8, 7}, GroupCodes{4, 7}, GroupCodes{4, 33}}) {
    const auto x = this->gaussian({37, 29}, 1);
    const auto coded = this->quantise(x, how);
    const auto back = this->dequantise(coded, x.shape, how);
    for (int64_t i = 0; i < x.count(); ++i) {
      const double step = static_cast<double>(coded.scale[i / how.group]);
      ASSERT_LE(std::abs(static_cast<double>(back[i] - x[i])), step * (1 + 1e-4)) << how.bits << " bits, entry " << i;
    }
  }
}

// The published zero is cut to the codes: there a group of .50 to .51 came back as .01, and a constant one as 1e-5.
TYPED_TEST(GroupCodesOf, AGroupWithoutZeroKeepsItsNumbers) {
  using T = TypeParam;
  for (const int bits : {4, 8})
    for (const auto& [low, high] : {std::pair{0.50, 0.51}, {0.25, 0.25}, {-0.51, -0.50}, {-0.25, -0.25}}) {
      const GroupCodes how{bits};
      const auto x = uniform<T>({256}, 3, low, high);
      const auto coded = this->quantise(x, how);
      const auto back = this->dequantise(coded, x.shape, how);
      EXPECT_LE(largest_difference(x, back), static_cast<double>(coded.scale[0]) * 0.5001) << bits << " bits, " << low << " to " << high;
    }
}

// METHODS.md 7 gives .11 and .007 for groups of 256.
TYPED_TEST(GroupCodesOf, RelativeErrorOfGaussianGroups) {
  const auto x = this->gaussian({512, 256}, 5);
  for (const auto& [bits, error] : {std::pair{4, 0.11}, {8, 0.0065}}) {
    const auto back = this->dequantise(this->quantise(x, {bits}), x.shape, {bits});
    double lost = 0, all = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
      lost += std::pow(static_cast<double>(back[i] - x[i]), 2);
      all += std::pow(static_cast<double>(x[i]), 2);
    }
    EXPECT_NEAR(std::sqrt(lost / all), error, 0.1 * error) << bits << " bits";
  }
}

TYPED_TEST(GroupCodesOf, CodesOfWhatComesBackAreTheSame) {
  for (const GroupCodes& how : {GroupCodes{8}, GroupCodes{4}, GroupCodes{4, 51}}) {
    const auto x = this->gaussian({40, 51}, 9);
    const auto once = this->quantise(x, how);
    const auto again = this->quantise(this->dequantise(once, x.shape, how), how);
    EXPECT_EQ(once.codes.v, again.codes.v) << how.bits;
    EXPECT_EQ(once.zero.v, again.zero.v) << how.bits;
  }
}

TYPED_TEST(GroupCodesOf, TheMeanOfStochasticCodesIsTheNumber) {
  const int64_t draws = 4000;
  for (const int bits : {4, 8}) {
    const GroupCodes how{bits, 64};
    const auto x = this->gaussian({3, 50}, 13);
    Array<double> mean(x.shape);
    Coded<TypeParam> coded;
    for (int64_t draw = 0; draw < draws; ++draw) {
      coded = this->quantise(x, how, 4, static_cast<uint64_t>(draw + 1));
      const auto back = this->dequantise(coded, x.shape, how);
      for (int64_t i = 0; i < x.count(); ++i) mean[i] += static_cast<double>(back[i]) / static_cast<double>(draws);
    }
    // A draw is at most one step wide: its deviation is at most half a step. The ends of a range may lie half a step outside the codes.
    for (int64_t i = 0; i < x.count(); ++i) {
      const double step = static_cast<double>(coded.scale[i / how.group]), low = -static_cast<double>(coded.zero[i / how.group]) * step,
                   high = low + step * ((1 << bits) - 1), value = std::clamp(static_cast<double>(x[i]), low, high);
      EXPECT_NEAR(mean[i], value, 5 * 0.5 * step / std::sqrt(static_cast<double>(draws)) + 1e-6 * step) << bits << " bits, entry " << i;
    }
  }
}

TYPED_TEST(GroupCodesOf, WhatIsNotFiniteIsNotHidden) {
  using T = TypeParam;
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    auto x = this->gaussian({1, 512}, 17);
    x[300] = bad;
    const auto back = this->dequantise(this->quantise(x, {8}), x.shape, {8});
    EXPECT_TRUE(std::isfinite(back[0]));
    EXPECT_TRUE(std::isnan(back[256])) << "the group of " << bad;
  }
}

TYPED_TEST(GroupCodesOf, ZeroBytesAreZeros) {
  const Coded<TypeParam> none{Array<unsigned char>({11}), Array<TypeParam>({3}), Array<TypeParam>({3})};
  for (const TypeParam value : this->dequantise(none, {21}, {4, 8}).v) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace comera::test
