#include "core/optim/refresh_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace comera {
namespace {

TEST(RefreshSchedule, TogetherIsEveryGap) {
  const RefreshSchedule schedule(5, 7, true);
  for (uint64_t step = 1; step <= 40; ++step) {
    EXPECT_EQ(schedule.any_due(step), step % 7 == 1) << step;
    for (int64_t matrix = 0; matrix < 5; ++matrix) EXPECT_EQ(schedule.due(matrix, step), step % 7 == 1);
  }
}

TEST(RefreshSchedule, InTurnNoStepHasMoreThanItsShare) {
  for (const int64_t matrices : {1, 2, 5, 7, 24, 73})
    for (const int64_t gap : {1, 2, 7, 24, 200}) {
      const RefreshSchedule schedule(matrices, gap, false);
      std::vector<int64_t> last(static_cast<size_t>(matrices), 0);
      for (int64_t step = 1; step <= 4 * gap + 1; ++step) {
        int64_t due = 0;
        for (int64_t matrix = 0; matrix < matrices; ++matrix) {
          if (!schedule.due(matrix, static_cast<uint64_t>(step))) continue;
          ++due;
          int64_t& before = last[static_cast<size_t>(matrix)];
          EXPECT_LE(step - before, gap);
          EXPECT_TRUE(before <= 1 || step - before == gap) << "only the first turn may come sooner";
          before = step;
        }
        if (step == 1)
          EXPECT_EQ(due, matrices) << "none has a projection yet";
        else
          EXPECT_LE(due, (matrices + gap - 1) / gap) << matrices << " matrices, gap " << gap << ", step " << step;
        EXPECT_EQ(due > 0, schedule.any_due(static_cast<uint64_t>(step)));
      }
      EXPECT_GT(*std::min_element(last.begin(), last.end()), 3 * gap - gap) << "every matrix has its turn";
    }
}

TEST(RefreshSchedule, KnowsTheLastRefresh) {
  for (const bool together : {true, false})
    for (const int64_t gap : {1, 2, 7, 24}) {
      const RefreshSchedule schedule(5, gap, together);
      for (int64_t matrix = 0; matrix < 5; ++matrix) {
        uint64_t last = 0;
        for (uint64_t step = 1; step <= 60; ++step) {
          if (schedule.due(matrix, step)) last = step;
          EXPECT_EQ(schedule.last(matrix, step), last) << matrix << " with gap " << gap << " at " << step;
        }
      }
    }
}

TEST(RefreshSchedule, CountsTheRefreshesOfEachMatrix) {
  for (const bool together : {true, false})
    for (const int64_t matrices : {1, 3, 7})
      for (const int64_t gap : {1, 4, 7}) {
        const RefreshSchedule schedule(matrices, gap, together);
        for (int64_t matrix = 0; matrix < matrices; ++matrix)
          for (int64_t step = 1, number = 0; step <= 5 * gap; ++step)
            if (schedule.due(matrix, static_cast<uint64_t>(step))) {
              EXPECT_EQ(schedule.number(matrix, static_cast<uint64_t>(step)), number++)
                  << matrix << " of " << matrices << ", step " << step;
            }
      }
}

TEST(RefreshSchedule, WithoutMatricesNothingIsDue) {
  EXPECT_FALSE(RefreshSchedule(0, 5, false).any_due(1));
  EXPECT_FALSE(RefreshSchedule(0, 5, true).any_due(1));
}

}  // namespace
}  // namespace comera
