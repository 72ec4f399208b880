// Whether a plan fits, and the figures that say so.
#include "core/train/forecast.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace comera::test {
namespace {

constexpr int64_t kMib = 1024 * 1024;

MemoryByPurpose taking(int64_t activations, int64_t workspace = 0) {
  MemoryByPurpose memory;
  memory[Purpose::activation] = activations;
  memory[Purpose::workspace] = workspace;
  return memory;
}

TEST(LackOfRoom, SaysWhatIsMissingInMib) {
  EXPECT_EQ((LackOfRoom{310 * kMib, 190 * kMib}.text()), "310.0 MiB more are needed, 190.0 MiB are free");
  EXPECT_EQ((LackOfRoom{kMib * 3 / 2, kMib / 4}.text()), "1.5 MiB more are needed, 0.2 MiB are free");
}

// What is held counts as free: it goes before the new plan is taken.
TEST(LackOfRoom, IsThereFromTheFirstByteThatIsMissing) {
  const MemoryByPurpose held = taking(100 * kMib, 20 * kMib), planned = taking(150 * kMib, 30 * kMib);
  EXPECT_FALSE(lack_of_room(planned, held, 60 * kMib));
  const std::optional<LackOfRoom> lack = lack_of_room(planned, held, 60 * kMib - 1);
  ASSERT_TRUE(lack);
  EXPECT_EQ(lack->need, 60 * kMib);
  EXPECT_EQ(lack->free, 60 * kMib - 1);
  EXPECT_FALSE(lack_of_room(held, planned, 0)) << "a smaller plan always fits";
}

TEST(CheckFits, RefusesFromTheFirstByteThatIsMissing) {
  const MemoryByPurpose planned = taking(300 * kMib, 100 * kMib);
  EXPECT_NO_THROW(check_fits(planned, 400 * kMib));
  try {
    check_fits(planned, 400 * kMib - 1);
    FAIL() << "a plan of one byte too much was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_STREQ(error.what(), "the run needs 400 MiB, 399 MiB are free");
    EXPECT_EQ(error.why(), "activations take 300 MiB, workspace 100 MiB");
  }
}

}  // namespace
}  // namespace comera::test
