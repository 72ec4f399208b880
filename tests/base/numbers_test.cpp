#include "core/base/numbers.h"

#include <gtest/gtest.h>

namespace comera {
namespace {

TEST(Numbers, ADurationIsADecimalNumberWithAUnit) {
  EXPECT_EQ(read_duration("45"), 45);
  EXPECT_EQ(read_duration("90s"), 90);
  EXPECT_EQ(read_duration("30m"), 1800);
  EXPECT_EQ(read_duration("1h"), 3600);
  EXPECT_EQ(read_duration("1.5h"), 5400);
  EXPECT_EQ(read_duration("0"), 0);
  EXPECT_EQ(read_duration("1e3s"), 1000);
  for (const char* text : {"", "soon", "s", "nan", "inf", "infs", "-inf", "infinity", "0x10", "0x10s", "-1", "-1s", "1d", "1 h", " 1h",
                           "1h ", "1e999", "1e308h", "1,5h"})
    EXPECT_EQ(read_duration(text), std::nullopt) << text;
}

TEST(Numbers, ADecimalEndsWhereItIsNoNumberAnyMore) {
  EXPECT_EQ(read_decimal("-2.5e-1x")->value, -0.25);
  EXPECT_EQ(read_decimal("-2.5e-1x")->rest, "x");
  EXPECT_EQ(read_decimal("0x10")->rest, "x10");
  EXPECT_EQ(read_decimal("7")->rest, "");
  for (const char* text : {"", "x", "nan", "inf", "-inf", "1e309", "+1", " 1"}) EXPECT_FALSE(read_decimal(text)) << text;
}

TEST(Numbers, TextsMayDifferInTheirDigits) {
  EXPECT_TRUE(same_but_for_numbers("", ""));
  EXPECT_TRUE(same_but_for_numbers("9 values were lost", "1024 values were lost"));
  EXPECT_FALSE(same_but_for_numbers("", "full"));
  EXPECT_FALSE(same_but_for_numbers("the disk is full", "the disk is gone"));
}

}  // namespace
}  // namespace comera
