// The float functions against the library's in double, over their whole range.
#include "core/ops/fast_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/ops/pointwise_math.h"

namespace comera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

// Every exponent, both signs, 400 mantissas each; and a fine grid where the functions turn.
std::vector<float> samples() {
  std::vector<float> x{0.0f, -0.0f};
  for (int exponent = -126; exponent < 128; ++exponent)
    for (int i = 0; i < 400; ++i)
      for (float sign : {1.0f, -1.0f}) x.push_back(sign * std::ldexp(1.0f + static_cast<float>(i) / 400.0f, exponent));
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<float>(i) * 2.6e-4f);  // to +-104
  return x;
}

// Largest relative error where the true value is a normal float; where it is smaller, absolute in units of the
// smallest normal one.
template <class Fast, class True>
double worst_error(const Fast& fast, const True& exact) {
  const std::vector<float> x = samples();
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = fast(x[i]);  // a plain loop: the vectorised form is what is tested
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(static_cast<double>(x[i])),
                 size = std::max(std::fabs(want), static_cast<double>(std::numeric_limits<float>::min()));
    if (std::fabs(want) > std::numeric_limits<float>::max()) {
      EXPECT_TRUE(std::isinf(y[i])) << x[i];
      continue;
    }
    worst = std::max(worst, std::fabs(static_cast<double>(y[i]) - want) / size);
  }
  return worst;
}

TEST(FastMath, Exp) {
  EXPECT_LT(worst_error([](float x) { return fast::exp(x); }, [](double x) { return std::exp(x); }), 3e-7);
  EXPECT_EQ(fast::exp(kInfinity), kInfinity);
  EXPECT_EQ(fast::exp(-kInfinity), 0.0f);
  EXPECT_EQ(fast::exp(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(fast::exp(kNaN)));
  EXPECT_TRUE(std::isnan(fast::exp(-kNaN)));
}

TEST(FastMath, Tanh) {
  EXPECT_LT(worst_error([](float x) { return fast::tanh(x); }, [](double x) { return std::tanh(x); }), 3e-7);
  EXPECT_EQ(fast::tanh(kInfinity), 1.0f);
  EXPECT_EQ(fast::tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(fast::tanh(kNaN)));
}

TEST(FastMath, Erf) {
  EXPECT_LT(worst_error([](float x) { return fast::erf(x); }, [](double x) { return std::erf(x); }), 3e-7);
  EXPECT_EQ(fast::erf(kInfinity), 1.0f);
  EXPECT_EQ(fast::erf(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(fast::erf(kNaN)));
}

TEST(FastMath, Gelu) {
  const auto error = [](const auto& f, double low, double high) {
    double worst = 0;
    for (int i = 0; i <= 1000000; ++i) {
      const float x = static_cast<float>(low + (high - low) * i / 1e6);
      const auto [got, want] = f(x);
      worst = std::max(worst, std::fabs(static_cast<double>(got) - want) / std::max(1.0, std::fabs(want)));
    }
    return worst;
  };
  EXPECT_LT(error([](float x) { return std::pair(Gelu::forward(x), Gelu::forward(static_cast<double>(x))); }, -20, 20), 2e-7);
  EXPECT_LT(error([](float x) { return std::pair(Gelu::slope(x), Gelu::slope(static_cast<double>(x))); }, -20, 20), 3e-7);
  EXPECT_EQ(Gelu::forward(kInfinity), kInfinity);
  EXPECT_NEAR(Gelu::forward(-1e30f), 0.0f, 1e-12);
  EXPECT_EQ(Gelu::slope(kInfinity), 1.0f);
  EXPECT_NEAR(Gelu::slope(-kInfinity), 0.0f, 1e-12);
  EXPECT_TRUE(std::isnan(Gelu::forward(kNaN)));
  EXPECT_TRUE(std::isnan(Gelu::slope(kNaN)));
  EXPECT_TRUE(std::isnan(Relu::forward(kNaN)));
  EXPECT_TRUE(std::isnan(Relu::backward(kNaN, -1.0f)));
}

TEST(DropoutMask, KeepsTheMeanAtEveryProbability) {
  for (double p : {0.0, 1e-9, 1.0 / 65536, 0.1, 0.25, 0.5, 1.0 / 3, 0.9, 0.9999}) {
    const DropoutMask<double> mask(p);
    int64_t kept = 0;
    double sum = 0;
    for (uint32_t draw = 0; draw < 65536; ++draw) {
      kept += mask.keeps(draw);
      sum += mask.apply(1.0, draw);
    }
    EXPECT_NEAR(static_cast<double>(kept) / 65536, 1 - p, 0.5 / 65536) << p;
    EXPECT_NEAR(sum / 65536, 1, 1e-12) << p;
  }
  const DropoutMask<float> all(0.9999999);
  for (uint32_t draw : {0u, 65535u}) EXPECT_EQ(all.apply(1.0f, draw), 0.0f);
  EXPECT_TRUE(std::isnan(DropoutMask<float>(0.5).apply(kNaN, 0)));
}

}  // namespace
}  // namespace comera
