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

TEST(Numbers, ASizeOfMemoryIsADecimalNumberWithAUnit) {
  EXPECT_EQ(read_bytes("4096"), 4096);
  EXPECT_EQ(read_bytes("1B"), 1);
  EXPECT_EQ(read_bytes("64MiB"), 64 << 20);
  EXPECT_EQ(read_bytes("64 MiB"), 64 << 20);
  EXPECT_EQ(read_bytes("1.5KiB"), 1536);
  EXPECT_EQ(read_bytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(read_bytes("1TiB"), int64_t{1} << 40);
  EXPECT_EQ(read_bytes("3kB"), 3000);
  EXPECT_EQ(read_bytes("64MB"), 64'000'000);
  EXPECT_EQ(read_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(read_bytes("2TB"), 2'000'000'000'000);
  for (const char* text : {"", "MiB", "0", "0.5", "-1", "-1MiB", "nan", "inf", "0x10", "64 mib", "64M", "64  MiB", "64MiB ", " 64MiB",
                           "1e999", "1e10GiB", "64,5MiB"})
    EXPECT_EQ(read_bytes(text), std::nullopt) << text;
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
