// Ranks of matrices that become tensor trains: those of smallest cost for a size of all (METHODS.md 1.11).
#pragma once
#include <cstdint>
#include <vector>

namespace comera {

// A matrix as the choice sees it: the rank between its columns and rows is chosen.
struct RankChoice {
  std::vector<double> costs;    // what each rank takes off the cost of an error, descending
  double unit = 1;              // of these costs against those of other matrices
  int64_t most = 1;             // the largest rank of use, 1..costs.size()
  int64_t fixed = 0, each = 1;  // a train of rank r has fixed + r each values
};

// The ranks, each 1..most, for which all costs together are smallest and all trains together have at most `values` values: direction after
// direction, the one that takes most off the cost for each value. Rank 1 where even that is larger.
std::vector<int64_t> ranks_for_size(const std::vector<RankChoice>& matrices, int64_t values);

}  // namespace comera
