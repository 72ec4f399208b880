// bf16 and E4M3: every code, ties, and both ends.
#include "core/ops/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "tests/ops/host.h"

namespace comera::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Bf16, EveryCodeComesBack) {
  for (int code = 0; code < 1 << 16; ++code) {
    const float x = from_bf16(static_cast<uint16_t>(code));
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(from_bf16(bf16_of(x)))) << code;
    else
      EXPECT_EQ(bf16_of(x), code);
  }
}

TEST(Bf16, IsTheNearestAndEvenOnTies) {
  EXPECT_EQ(from_bf16(bf16_of(1.0f)), 1.0f);
  EXPECT_EQ(from_bf16(bf16_of(-0.0f)), 0.0f);
  EXPECT_TRUE(std::signbit(from_bf16(bf16_of(-0.0f))));
  EXPECT_EQ(from_bf16(bf16_of(1.0f + 0x1p-8f)), 1.0f) << "half way: to the even one below";
  EXPECT_EQ(from_bf16(bf16_of(1.0f + 0x3p-8f)), 1.0f + 0x1p-6f) << "half way: to the even one above";
  EXPECT_EQ(from_bf16(bf16_of(1.0f + 0x1.02p-8f)), 1.0f + 0x1p-7f);
  EXPECT_EQ(from_bf16(bf16_of(kInfinity)), kInfinity);
  EXPECT_EQ(from_bf16(bf16_of(-kInfinity)), -kInfinity);
  EXPECT_EQ(from_bf16(bf16_of(std::numeric_limits<float>::max())), kInfinity);
  for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u})
    EXPECT_TRUE(std::isnan(from_bf16(bf16_of(fast::float_of(bits))))) << bits;
  const Philox stream{5, 1, 2};
  for (uint64_t i = 0; i < 100000; ++i) {
    const float x = fast::float_of(stream.word(i));
    if (!std::isfinite(x)) continue;
    const uint16_t code = bf16_of(x);
    const double off = std::abs(static_cast<double>(from_bf16(code)) - x);
    if (std::isinf(off)) continue;
    for (const int other : {code - 1, code + 1}) {
      const double theirs = std::abs(static_cast<double>(from_bf16(static_cast<uint16_t>(other))) - x);
      EXPECT_FALSE(theirs < off) << x;
    }
  }
}

TEST(E4m3, EveryCodeComesBack) {
  for (int code = 0; code < 256; ++code) {
    const float x = from_e4m3(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(x));
    else
      EXPECT_EQ(e4m3_of(x), code) << x;
  }
  EXPECT_EQ(from_e4m3(0x7e), 448);
  EXPECT_EQ(from_e4m3(0x01), 0x1p-9f);
  EXPECT_EQ(from_e4m3(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(from_e4m3(0x08), 0x1p-6f);
  EXPECT_EQ(from_e4m3(0x38), 1);
  EXPECT_EQ(from_e4m3(0xb9), -1.125);
}

TEST(E4m3, IsTheNearestEvenOnTiesAndHeldToItsRange) {
  EXPECT_TRUE(std::isnan(from_e4m3(e4m3_of(kNaN))));
  for (const float x : {448.5f, 470.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(from_e4m3(e4m3_of(x)), 448);
    EXPECT_EQ(from_e4m3(e4m3_of(-x)), -448);
  }
  EXPECT_EQ(from_e4m3(e4m3_of(1e-30f)), 0);
  // Between neighbours a < b: below the middle a, above it b, at it the one whose code is even.
  for (int code = 0; code < 0x7e; ++code) {
    const float a = from_e4m3(static_cast<uint8_t>(code)), b = from_e4m3(static_cast<uint8_t>(code + 1)), middle = a + (b - a) / 2;
    EXPECT_EQ(e4m3_of(middle), code % 2 == 0 ? code : code + 1) << middle;
    EXPECT_EQ(e4m3_of(std::nextafter(middle, a)), code);
    EXPECT_EQ(e4m3_of(std::nextafter(middle, b)), code + 1);
    EXPECT_EQ(e4m3_of(-middle), 0x80 | (code % 2 == 0 ? code : code + 1));
  }
}

TEST(E4m3, TheLargestEntryBecomes448) {
  for (const float largest : {1e-20f, 0.3f, 7.0f, 1e20f}) EXPECT_EQ(from_e4m3(e4m3_of(largest * e4m3_scale(largest))), 448) << largest;
  EXPECT_EQ(e4m3_scale(0), 1);
}

template <class T>
class Bf16Stash : public ::testing::Test {};
TYPED_TEST_SUITE(Bf16Stash, FloatTypes);

TYPED_TEST(Bf16Stash, KeepsAndLoads) {
  using T = TypeParam;
  CpuOps ops(2);
  const auto x = uniform<T>({300, 211}, 3, -5, 5);  // more than one thread's share
  Array<unsigned short> codes(x.shape);
  Array<T> back(x.shape, T(9));
  ops.bf16_keep(codes, x);
  ops.bf16_load(back, codes);
  bool rounded = false;
  for (int64_t i = 0; i < x.count(); ++i) {
    ASSERT_EQ(back[i], static_cast<T>(from_bf16(bf16_of(static_cast<float>(x[i]))))) << i;
    ASSERT_LE(std::abs(back[i] - x[i]), std::abs(x[i]) * 0x1.01p-8) << i;
    rounded = rounded || back[i] != x[i];
  }
  EXPECT_TRUE(rounded);
}

}  // namespace
}  // namespace comera::test
