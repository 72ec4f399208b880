// The maps of the 8-bit moments, and 8-bit Adam.
#include "core/ops/quant_math.h"

#include <limits>
#include <numeric>

#include "tests/ops/host.h"

namespace comera::test {
namespace {

using Bytes = Array<unsigned char>;

TEST(QuantMap, CheckValues) {
  const QuantMap s = make_quant_map(true), u = make_quant_map(false);
  EXPECT_FLOAT_EQ(s.value[0], -0.99296875f);
  EXPECT_FLOAT_EQ(s.value[126], -5.5e-7f);
  EXPECT_EQ(s.value[127], 0);
  EXPECT_FLOAT_EQ(s.value[128], 5.5e-7f);
  EXPECT_FLOAT_EQ(s.value[254], 0.99296875f);
  EXPECT_EQ(s.value[255], 1);
  EXPECT_NEAR(std::accumulate(s.value, s.value + 256, 0.0), 1, 1e-6);
  EXPECT_EQ(u.value[0], 0);
  EXPECT_FLOAT_EQ(u.value[1], 3.25e-7f);
  EXPECT_FLOAT_EQ(u.value[2], 7.75e-7f);
  EXPECT_FLOAT_EQ(u.value[254], 0.99648438f);
  EXPECT_EQ(u.value[255], 1);
  EXPECT_NEAR(std::accumulate(u.value, u.value + 256, 0.0), 75.10526, 1e-4);
  float gap_s = 0, gap_u = 0;
  for (int k = 0; k < 255; ++k) {
    EXPECT_LT(s.value[k], s.value[k + 1]);
    EXPECT_LT(u.value[k], u.value[k + 1]);
    gap_s = std::max(gap_s, s.value[k + 1] - s.value[k]);
    gap_u = std::max(gap_u, u.value[k + 1] - u.value[k]);
  }
  EXPECT_NEAR(gap_s, 0.0140625, 1e-6);
  EXPECT_NEAR(gap_u, 0.00703125, 1e-6);
}

TEST(QuantMap, CodeIsTheNearestValue) {
  for (bool is_signed : {true, false}) {
    const QuantMap map = make_quant_map(is_signed);
    for (int k = 0; k < 256; ++k) EXPECT_EQ(quant_code(map.border, map.value[k]), k);
    const auto x = uniform<float>({20000}, 1, is_signed ? -1.1 : 0, 1.1);
    for (float value : x.v) {
      const float small = value * value * value;
      const int code = quant_code(map.border, small);
      float best = 2;
      for (float entry : map.value) best = std::min(best, std::abs(entry - small));
      EXPECT_FLOAT_EQ(std::abs(map.value[code] - small), best);
    }
  }
  EXPECT_EQ(quant_code(make_quant_map(true).border, std::numeric_limits<float>::quiet_NaN()), 0);
}

template <class T>
class Quant : public ::testing::Test {};
TYPED_TEST_SUITE(Quant, FloatTypes);

TYPED_TEST(Quant, ErrorIsAtMostHalfTheLocalGap) {
  using T = TypeParam;
  CpuOps ops(2);
  const int64_t count = 256 * 40 + 77, blocks = 41;
  for (bool is_signed : {true, false}) {
    const QuantMap map = make_quant_map(is_signed);
    auto x = uniform<T>({count}, 2, is_signed ? -1 : 0, 1);
    for (T& value : x.v) value = value * value * value * T(1e-4);
    Bytes codes({count});
    Array<float> absmax({blocks});
    Array<T> back({count});
    ops.quantise8bit(codes, absmax, x, is_signed);
    ops.dequantise8bit(back, codes, absmax, is_signed);
    for (int64_t i = 0; i < count; ++i) {
      const int code = codes[i];
      const float below = code > 0 ? map.value[code] - map.value[code - 1] : 0,
                  above = code < 255 ? map.value[code + 1] - map.value[code] : 0;
      // Left of the signed map's end there is no value: an extreme of -absmax loses .7 %.
      const double half = code == 0 && is_signed ? 0.00704 : 0.5 * static_cast<double>(std::max(below, above));
      const double scale = static_cast<double>(absmax[i / 256]);
      ASSERT_LE(std::abs(static_cast<double>(back[i] - x[i])), scale * (half * (1 + 1e-4) + 1e-7)) << i;
    }
  }
}

TYPED_TEST(Quant, CodesSurviveARoundTrip) {
  using T = TypeParam;
  CpuOps ops(2);
  for (bool is_signed : {true, false}) {
    Bytes codes({512}), again({512});
    for (int i = 0; i < 512; ++i) codes[i] = static_cast<unsigned char>(i & 255);  // holds 255: the maximum is +absmax
    Array<float> absmax({2}, std::vector<float>{0.37f, 1.3e-12f}), absmax_again({2});
    Array<T> x({512});
    ops.dequantise8bit(x, codes, absmax, is_signed);
    ops.quantise8bit(again, absmax_again, x, is_signed);
    EXPECT_EQ(codes.v, again.v);
    EXPECT_EQ(absmax.v, absmax_again.v);
  }
}

TYPED_TEST(Quant, NumbersThatMustNotBecomeZeroGetTheNextCode) {
  using T = TypeParam;
  CpuOps ops(1);
  const T x[] = {T(1), T(1e-9), T(-1e-9), T(0), T(0.5)};
  for (const bool is_signed : {true, false}) {
    const unsigned char zero = is_signed ? 127 : 0;
    for (const NeverZero never : {NeverZero::none, NeverZero::negative, NeverZero::positive}) {
      if (never == NeverZero::negative && !is_signed) continue;  // the map has no negative number
      Bytes codes({5});
      Array<float> absmax({1});
      ops.quantise8bit(codes, absmax, Array<T>({5}, std::vector<T>(x, x + 5)), is_signed, never);
      EXPECT_EQ(codes[1], zero + (never == NeverZero::positive)) << is_signed;
      EXPECT_EQ(codes[2], zero - (never == NeverZero::negative)) << is_signed;
      EXPECT_EQ(codes[3], zero);
    }
  }
}

TYPED_TEST(Quant, ABlockOfZerosStaysZero) {
  using T = TypeParam;
  CpuOps ops(1);
  Bytes codes({300}, 9);
  Array<float> absmax({2}, 1.f);
  Array<T> x({300}), back({300}, T(1));
  ops.quantise8bit(codes, absmax, x, true);
  ops.dequantise8bit(back, codes, absmax, true);
  EXPECT_EQ(absmax.v, (std::vector<float>{0, 0}));
  EXPECT_EQ(codes[5], 127);
  EXPECT_EQ(back.v, std::vector<T>(300, T(0)));
}

template <class T>
struct Adam8 {
  Array<T> w;
  Bytes m, v;
  Array<float> max_m, max_v;
  StepScalars step;
  explicit Adam8(int64_t count)
      : w(uniform<T>({count}, 1)), m({count}), v({count}), max_m({(count + 255) / 256}), max_v({(count + 255) / 256}) {
    for (double& rate : step.learning_rate) rate = 0.01;
  }
  void run(CpuOps& ops, const Array<T>& g, double eps = 1e-8, NeverZero second = NeverZero::none) {
    ++step.optimizer_step;
    ops.adam8bit(w, g, m, v, max_m, max_v, {AdamFlavour::bitsandbytes, 0.9, 0.999, eps}, ParamGroup::core, block_tensor(step), second);
  }
};

// An entry whose gradient is 1/5,000 of its block's largest, and then 0: as published, v becomes 0 and m does not.
TYPED_TEST(Quant, AGradientThatVanishesMakesNoHugeStep) {
  using T = TypeParam;
  CpuOps ops(1);
  const auto largest_step = [&](NeverZero second) {
    Adam8<T> adam(256);
    Array<T> g({256}, T(1));
    double most = 0;
    for (int step = 0; step < 20; ++step) {
      g[3] = step == 0 ? T(2e-4) : T(0);
      const T before = adam.w[3];
      adam.run(ops, g, 1e-8, second);
      most = std::max(most, std::abs(static_cast<double>(adam.w[3] - before)) / 0.01);  // in learning rates
    }
    return most;
  };
  EXPECT_GT(largest_step(NeverZero::none), 100) << "as published";
  EXPECT_LT(largest_step(NeverZero::positive), 10);
}

TYPED_TEST(Quant, AdamsFirstUpdateIsTheSign) {
  using T = TypeParam;
  CpuOps ops(2);
  Adam8<T> adam(1000);
  const auto start = adam.w;
  const auto g = uniform<T>({1000}, 3);
  adam.run(ops, g, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_NEAR(adam.w[i], static_cast<double>(start[i]) - (g[i] > 0 ? 0.01 : -0.01), 1e-6);
}

TYPED_TEST(Quant, AdamFollowsPlainMomentsClosely) {
  using T = TypeParam;
  CpuOps ops(2);
  Adam8<T> adam(3000);
  Array<T> w = adam.w, m({3000}), v({3000});
  const auto base = uniform<T>({3000}, 4);
  double moved = 0;
  for (uint32_t t = 1; t <= 20; ++t) {
    auto g = uniform<T>({3000}, 100 + t, -0.3, 0.3);
    for (int i = 0; i < 3000; ++i) g[i] += base[i];
    adam.run(ops, g);
    ops.adam(w, g, m, v, {AdamFlavour::bitsandbytes}, ParamGroup::core, block_tensor(adam.step));
  }
  double apart = 0;
  const auto start = uniform<T>({3000}, 1);
  for (int i = 0; i < 3000; ++i) {
    apart += std::abs(static_cast<double>(adam.w[i] - w[i]));
    moved += std::abs(static_cast<double>(w[i] - start[i]));
  }
  EXPECT_LT(apart, 0.02 * moved);
}

TYPED_TEST(Quant, ASmallNegativeMomentKeepsItsSign) {
  using T = TypeParam;
  CpuOps ops(1);
  Adam8<T> adam(256);
  Array<T> g({256}, T(1));
  g[3] = T(-1e-9);  // nearest value is 0
  g[4] = T(1e-9);
  g[5] = T(0);
  adam.run(ops, g);
  EXPECT_EQ(adam.m[3], 126);
  EXPECT_EQ(adam.m[4], 127);
  EXPECT_EQ(adam.m[5], 127);
}

TYPED_TEST(Quant, AGradientThatIsNotFiniteIsSkipped) {
  using T = TypeParam;
  CpuOps ops(1);
  Adam8<T> adam(300);
  adam.step.weight_decay = 0.5;
  const auto start = adam.w;
  auto g = uniform<T>({300}, 5, 0.5, 1);
  g[7] = std::numeric_limits<T>::quiet_NaN();
  g[8] = -std::numeric_limits<T>::infinity();
  adam.run(ops, g);
  Array<T> m({300}), v({300});
  ops.dequantise8bit(m, adam.m, adam.max_m, true);
  ops.dequantise8bit(v, adam.v, adam.max_v, false);
  for (int i : {7, 8}) {
    EXPECT_EQ(adam.w[i], start[i]);
    EXPECT_EQ(m[i], T(0));
    EXPECT_EQ(v[i], T(0));
  }
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(std::isfinite(adam.w[i]) && std::isfinite(m[i]));
  EXPECT_NE(adam.w[9], start[9]);
}

TYPED_TEST(Quant, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  const auto g = uniform<T>({30001}, 6);
  Adam8<T> first(30001);
  CpuOps one(1);
  first.run(one, g);
  first.run(one, g);
  for (int threads : {2, 3}) {
    CpuOps ops(threads);
    Adam8<T> again(30001);
    again.run(ops, g);
    again.run(ops, g);
    EXPECT_TRUE(same_bits(first.w, again.w)) << threads;
    EXPECT_EQ(first.m.v, again.m.v);
    EXPECT_EQ(first.v.v, again.v.v);
    EXPECT_EQ(first.max_m.v, again.max_m.v);
  }
}

}  // namespace
}  // namespace comera::test
