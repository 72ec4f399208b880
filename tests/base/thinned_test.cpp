#include "core/base/thinned.h"

#include <gtest/gtest.h>

namespace comera {
namespace {

TEST(Thinned, KeepsAllOfAFewAndAnEvenShareOfMany) {
  Thinned<int64_t> kept(8);
  for (int64_t i = 0; i < 100'000; ++i) {
    kept.push_back(i);
    ASSERT_EQ(kept.count(), i + 1);
    ASSERT_LE(kept.values().size(), 8u);
    if (i < 8) {
      ASSERT_EQ(kept.stride(), 1);
    }
    if (i >= 8) {
      ASSERT_GE(kept.values().size(), 5u) << "no less than half of it, and the next one";
    }
    for (size_t k = 0; k < kept.values().size(); ++k) ASSERT_EQ(kept.values()[k], static_cast<int64_t>(k) * kept.stride()) << "after " << i;
    ASSERT_GT(static_cast<int64_t>(kept.values().size()) * kept.stride(), i) << "up to the last one";
  }
}

TEST(Thinned, AnOddSizeIsRoundedDown) {
  Thinned<int> kept(5);
  for (int i = 0; i < 1000; ++i) {
    kept.push_back(i);
    for (size_t k = 0; k < kept.values().size(); ++k) ASSERT_EQ(kept.values()[k], static_cast<int>(k) * kept.stride());
  }
  EXPECT_LE(kept.values().size(), 4u);
}

}  // namespace
}  // namespace comera
