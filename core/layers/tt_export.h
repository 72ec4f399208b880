// Tensor trains as plain matrices and back, on the host in double: for exports, imports, and for tests.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/layers/fitted_ranks.h"
#include "core/layers/form.h"
#include "core/layers/gradient_moments.h"

namespace comera {

// A copy of every parameter in which the rank vectors are folded into the cores: U_k becomes U_k * thr(D_k), and D_k
// becomes 1 where it was live and 0 where it was dead, so the copy computes the same function at any threshold under
// 1. For export only: to train on from it would be another parametrisation (METHODS.md 1.6).
std::vector<HostTensor> fold(const ParamSet& params, Device& device, double threshold);

// The matrix a layer stands for, with masks applied: W (out, in) of a TT layer, the table (rows, columns) of a TTM. Where
// the modes multiply to more than the true sizes, the padding is cut off.
HostTensor dense_weight(const RankLayer& layer, Device& device, double threshold);

// Where the entries of a train, multiplied out, stand in its matrix or table (rows, columns).
class TrainPlaces {
 public:
  static constexpr int64_t kPadding = -1;
  explicit TrainPlaces(const RankLayer& layer);
  int64_t count() const { return count_; }
  int64_t of(int64_t index) const;  // row columns + column; kPadding: behind the true sizes

 private:
  const RankLayer& layer_;
  const bool table_;
  int64_t out_ = 1, count_ = 0;
};

// The cores of a layer that come nearest to a matrix or table (TT-SVD, Oseledets 2011; METHODS.md 1.11), at the ranks that the layer has,
// or with `most_error` at the smallest ones, bond after bond, that keep `error` at most that.
struct TrainOfMatrix {
  std::vector<std::vector<double>> cores;
  double error = 0;            // of all entries together, relative to their root sum of squares
  std::vector<int64_t> ranks;  // of the bonds
};
TrainOfMatrix tt_svd(const RankLayer& layer, const std::vector<double>& matrix, std::optional<double> most_error = {});

// Not a table of TTM cores. Then the train is W^T (in, out): one bond lies between the columns of W and its rows.
bool is_matrix(const RankLayer& layer);
// With one core a side that is the only bond: W is two factors, for which ranks can be chosen (moments: of gradients, or null).
bool is_two_factors(const RankLayer& layer);
RankChoice rank_choice(const RankLayer& layer, const std::vector<double>& matrix, const GradientMoments* moments);
TrainOfMatrix two_factors(const RankLayer& layer, const std::vector<double>& matrix, int64_t rank);

// Of a matrix with errors weighted by gradients: TT-SVD of its nearest_of_rank(), at the ranks that the layer has, or of two factors at
// `rank` where it is above 0.
struct TrainByGradients {
  TrainOfMatrix train;        // its error counts all entries alike, as above
  double weighted_error = 0;  // NearestOfRank::error, of the bond between columns and rows
};
TrainByGradients tt_svd(const RankLayer& layer, const std::vector<double>& matrix, const GradientMoments& moments, int64_t rank = 0);

}  // namespace comera
