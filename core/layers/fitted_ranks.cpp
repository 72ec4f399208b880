#include "core/layers/fitted_ranks.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace comera {

std::vector<int64_t> ranks_for_size(const std::vector<RankChoice>& matrices, int64_t values) {
  struct Rank {
    double gain;  // for each value
    size_t matrix;
  };
  std::vector<Rank> ranks;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const RankChoice& matrix = matrices[i];
    const double nothing = 1e-14 * std::accumulate(matrix.costs.begin(), matrix.costs.end(), 0.0);
    values -= matrix.each;
    for (int64_t rank = 2; rank <= matrix.most && matrix.costs[static_cast<size_t>(rank - 1)] > nothing; ++rank)
      ranks.push_back({matrix.costs[static_cast<size_t>(rank - 1)] / static_cast<double>(matrix.each), i});
  }
  CHECK(values >= 0, -values << " values too few for rank 1");
  std::stable_sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.gain > b.gain; });
  std::vector<int64_t> found(matrices.size(), 1);
  for (const Rank& rank : ranks) {  // those of a matrix are equally large, so they are taken in their order
    const int64_t each = matrices[rank.matrix].each;
    if (each > values) continue;
    values -= each;
    ++found[rank.matrix];
  }
  return found;
}

}  // namespace comera
