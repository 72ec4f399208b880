// Ranks for a size of all matrices: the smallest cost at the size that was asked for.
#include "core/layers/fitted_ranks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace comera {
namespace {

double cost_of(const std::vector<RankChoice>& matrices, const std::vector<int64_t>& ranks) {
  double cost = 0;
  for (size_t i = 0; i < matrices.size(); ++i) cost += std::accumulate(matrices[i].costs.begin() + ranks[i], matrices[i].costs.end(), 0.0);
  return cost;
}

int64_t values_of(const std::vector<RankChoice>& matrices, const std::vector<int64_t>& ranks) {
  int64_t values = 0;
  for (size_t i = 0; i < matrices.size(); ++i) values += ranks[i] * matrices[i].each;
  return values;
}

TEST(RanksForSize, NoOtherRanksOfThisSizeCostLess) {
  const std::vector<RankChoice> matrices = {{.costs = {9, 5, 1, 0.5}, .each = 10, .most = 4},
                                            {.costs = {2, 1.75, 1.5, 1}, .each = 10, .most = 4},
                                            {.costs = {16, 0.5, 0.25, 0.125}, .each = 10, .most = 3}};
  for (int64_t values = 30; values <= 120; values += 3) {
    const std::vector<int64_t> ranks = ranks_for_size(matrices, values);
    EXPECT_LE(values_of(matrices, ranks), values);
    for (int64_t a = 1; a <= matrices[0].most; ++a)
      for (int64_t b = 1; b <= matrices[1].most; ++b)
        for (int64_t c = 1; c <= matrices[2].most; ++c)
          if (values_of(matrices, {a, b, c}) <= values) {
            EXPECT_GE(cost_of(matrices, {a, b, c}), cost_of(matrices, ranks)) << values;
          }
  }
}

TEST(RanksForSize, CountsTheValuesThatARankTakes) {
  // The second matrix gains more by a rank, the first more for each value.
  const std::vector<RankChoice> matrices = {{.costs = {5, 3, 2}, .each = 4, .most = 3}, {.costs = {9, 8, 7}, .each = 20, .most = 3}};
  EXPECT_EQ(ranks_for_size(matrices, 28), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(ranks_for_size(matrices, 48), (std::vector<int64_t>{3, 1})) << "the second's next rank has no room; the first's has";
  EXPECT_EQ(ranks_for_size(matrices, 52), (std::vector<int64_t>{3, 2}));
}

TEST(RanksForSize, LeavesOutWhatTakesNothingOff) {
  const std::vector<RankChoice> matrices = {{.costs = {5, 1e-17, 0}, .each = 4, .most = 3}, {.costs = {0, 0}, .each = 3, .most = 2}};
  EXPECT_EQ(ranks_for_size(matrices, 100), (std::vector<int64_t>{1, 1}));
}

}  // namespace
}  // namespace comera
