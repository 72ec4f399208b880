// Philox 4x32-10 against the known-answer vectors of its authors, and the two uniforms.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/rng.h"

namespace comera {
namespace {

TEST(Philox, KnownAnswers) {
  // Counter words are (block low, block high, step, site); key words (seed low, seed high).
  const Philox::Block zero = Philox{0, 0, 0}.draw(0);
  EXPECT_EQ(zero.v[0], 0x6627e8d5u);
  EXPECT_EQ(zero.v[1], 0xe169c58du);
  EXPECT_EQ(zero.v[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.v[3], 0x9b00dbd8u);
  const Philox::Block ones = Philox{0xffffffffffffffffull, 0xffffffffu, 0xffffffffu}.draw(0xffffffffffffffffull);
  EXPECT_EQ(ones.v[0], 0x408f276du);
  EXPECT_EQ(ones.v[1], 0x41c83b0eu);
  EXPECT_EQ(ones.v[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.v[3], 0x6d5451fdu);
  const Philox::Block pi = Philox{0x299f31d0a4093822ull, 0x13198a2eu, 0x03707344u}.draw(0x85a308d3243f6a88ull);
  EXPECT_EQ(pi.v[0], 0xd16cfe09u);
  EXPECT_EQ(pi.v[1], 0x94fdccebu);
  EXPECT_EQ(pi.v[2], 0x5001e420u);
  EXPECT_EQ(pi.v[3], 0x24126ea1u);
}

TEST(Philox, WordIsTheBlockElementAndSitesDiffer) {
  const Philox a{11, 3, 5}, b{11, 3, 6}, c{11, 4, 5};
  for (uint64_t i = 0; i < 9; ++i) EXPECT_EQ(a.word(i), a.draw(i / 4).v[i % 4]);
  for (uint64_t i = 0; i < 18; ++i) EXPECT_EQ(a.half(i), i % 2 ? a.word(i / 2) >> 16 : a.word(i / 2) & 0xffffu);
  EXPECT_NE(a.word(0), b.word(0));
  EXPECT_NE(a.word(0), c.word(0));
}

TEST(Uniform, BoundsAndMean) {
  EXPECT_EQ(uniform_half(0), 0.0f);
  EXPECT_LT(uniform_half(0xffffffffu), 1.0f);
  EXPECT_GT(uniform_open(0), 0.0f);
  EXPECT_EQ(uniform_open(0xffffffffu), 1.0f);
  const Philox random{1, 1, 1};
  double sum = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) sum += uniform_half(random.word(static_cast<uint64_t>(i)));
  EXPECT_NEAR(sum / count, 0.5, 5 * 0.2887 / std::sqrt(count));  // five standard errors
}

}  // namespace
}  // namespace comera
