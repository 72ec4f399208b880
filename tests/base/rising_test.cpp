// Rising numbers come back exactly, however evenly they stand, and take no memory where they are even.
#include "core/base/rising.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace comera {
namespace {

TEST(Rising, EveryNumberComesBack) {
  std::vector<int64_t> steps;
  int64_t step = -5;
  for (int i = 0; i < 2000; ++i) {
    step += i < 1000 ? 1 : i % 300 == 0 ? 77 : i < 1500 ? 10 : 1 + i * i % 7;
    steps.push_back(step);
  }
  Rising<int64_t> rising(steps);
  ASSERT_EQ(rising.size(), steps.size());
  EXPECT_EQ(rising.all(), steps);
  EXPECT_EQ(rising.front(), steps.front());
  EXPECT_EQ(rising.back(), steps.back());
  for (const int64_t value : {steps[0] - 1, steps[0], steps[999], steps[999] + 1, steps[1700] - 1, steps.back(), steps.back() + 1}) {
    EXPECT_EQ(std::upper_bound(rising.begin(), rising.end(), value) - rising.begin(),
              std::upper_bound(steps.begin(), steps.end(), value) - steps.begin());
  }
  // Cut anywhere, also to the first of a stretch, and gone on with.
  for (const size_t size : {size_t{1999}, size_t{1501}, size_t{1001}, size_t{1000}, size_t{999}, size_t{2}, size_t{1}, size_t{0}}) {
    Rising<int64_t> cut = rising;
    cut.resize(size);
    std::vector<int64_t> wanted(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(cut.all(), wanted) << size;
    for (const int64_t more : {100'000, 100'003, 100'006, 100'010}) {
      cut.push_back(more);
      wanted.push_back(more);
    }
    EXPECT_EQ(cut.all(), wanted) << size;
    EXPECT_TRUE(cut == Rising<int64_t>(wanted));
  }
  const Rising<int64_t> moved = std::move(rising);
  EXPECT_EQ(moved.size(), steps.size());
  EXPECT_TRUE(rising.empty());  // NOLINT: a moved one can be used again
  EXPECT_EQ(rising.size(), 0u);
}

TEST(Rising, FractionsAreNotRounded) {
  std::vector<double> numbers;
  for (int i = 1; i <= 500; ++i) numbers.push_back(i * 0.1 + std::sqrt(i) * 1e-9);
  EXPECT_EQ(Rising<double>(numbers).all(), numbers);
}

}  // namespace
}  // namespace comera
