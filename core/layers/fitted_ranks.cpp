#include "core/layers/fitted_ranks.h"

#include <algorithm>

namespace comera {

std::vector<int64_t> ranks_for_size(const std::vector<RankChoice>& matrices, int64_t values) {
  struct Direction {
    double gain;  // for each value
    size_t matrix;
  };
  std::vector<Direction> directions;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const RankChoice& matrix = matrices[i];
    values -= matrix.fixed + matrix.each;
    for (int64_t rank = 2; rank <= matrix.most; ++rank)
      directions.push_back({matrix.costs[static_cast<size_t>(rank - 1)] * matrix.unit / static_cast<double>(matrix.each), i});
  }
  std::stable_sort(directions.begin(), directions.end(), [](const Direction& a, const Direction& b) { return a.gain > b.gain; });
  std::vector<int64_t> ranks(matrices.size(), 1);
  for (const Direction& direction : directions) {
    // Costs of a matrix may be out of order by a rounding: its ranks are taken one after another all the same.
    const int64_t each = matrices[direction.matrix].each;
    if (each > values) continue;
    values -= each;
    ++ranks[direction.matrix];
  }
  return ranks;
}

}  // namespace comera
