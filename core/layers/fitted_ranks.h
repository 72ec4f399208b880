// Ranks of matrices that become tensor trains: those of smallest cost for a size of all (METHODS.md 1.11).
#pragma once
#include <cstdint>
#include <vector>

namespace comera {

// A matrix W that becomes two factors of one rank.
struct RankChoice {
  std::vector<double> costs;  // what each rank takes off the cost of all errors, descending
  int64_t each = 1;           // values that a rank takes: rows and columns of the factors
  int64_t most = 1;           // the largest rank, 1..costs.size()
};

// The ranks, each 1..most, for which all costs together are smallest and all factors together have at most `values` values, which suffice
// for rank 1: rank after rank, the one that takes most off the cost for each value. Ranks that take nothing off, but for rounding, are left
// out.
std::vector<int64_t> ranks_for_size(const std::vector<RankChoice>& matrices, int64_t values);

}  // namespace comera
