// TT-SVD (Oseledets 2011, algorithm 1): bond after bond, the leading left singular vectors of what is left are the next core.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/layers/tt_export.h"
#include "core/ops/device.h"

namespace comera {
namespace {

double length(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

Tensor on_host(std::vector<double>& values, int64_t rows, int64_t columns) {
  CHECK(static_cast<int64_t>(values.size()) == rows * columns, values.size() << " values");
  return Tensor(values.data(), {rows, columns}, DType::f64);
}

// The smallest rank that leaves out at most `square` of the rest (R, C) of a matrix: row p of `next` is as long as singular value p.
int64_t rank_for(const std::vector<double>& next, int64_t values, double square) {
  const auto columns = next.size() / static_cast<size_t>(values);
  double left_out = 0;
  for (int64_t rank = values; rank > 1; --rank) {
    const double* row = next.data() + static_cast<size_t>(rank - 1) * columns;
    for (size_t i = 0; i < columns; ++i) left_out += row[i] * row[i];
    if (left_out > square) return rank;
  }
  return 1;
}

// The largest rank of each bond that could be of use: the smaller of the products of modes on its two sides.
std::vector<double> most_ranks(const RankLayer& layer) {
  std::vector<double> left(1, 1), ranks;
  for (const Param* core : layer.cores)
    left.push_back(left.back() * static_cast<double>(core->count() / (core->shape[0] * core->shape[-1])));
  for (size_t k = 1; k + 1 < left.size(); ++k) ranks.push_back(std::min(left[k], left.back() / left[k]));
  return ranks;
}

// The first `rank` columns of (rows, columns).
std::vector<double> leading(const std::vector<double>& basis, int64_t columns, int64_t rank) {
  std::vector<double> out;
  for (size_t row = 0; row < basis.size(); row += static_cast<size_t>(columns))
    out.insert(out.end(), basis.begin() + static_cast<long>(row), basis.begin() + static_cast<long>(row) + rank);
  return out;
}

std::unique_ptr<Device> whole_cpu() { return open_cpu_device(static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))); }

// Root of the sum of squares of `matrix` less the cores multiplied out, relative to that of `matrix`.
double error_of(const RankLayer& layer, TrainOfMatrix& train, const std::vector<double>& matrix) {
  const std::unique_ptr<Device> device = whole_cpu();
  std::vector<double> left = {1};  // (l_1 .. l_k, r_k)
  for (size_t k = 0; k < train.cores.size(); ++k) {
    const int64_t rank = k > 0 ? train.ranks[k - 1] : 1, rows = std::ssize(left) / rank, width = std::ssize(train.cores[k]) / rank;
    std::vector<double> next(static_cast<size_t>(rows * width));
    device->ops().gemm(on_host(next, rows, width), on_host(left, rows, rank), false, on_host(train.cores[k], rank, width), false);
    left = std::move(next);
  }
  const TrainPlaces places(layer);
  double sum = 0;
  for (int64_t i = 0; i < places.count(); ++i)
    if (const int64_t place = places.of(i); place != TrainPlaces::kPadding)
      sum += std::pow(left[static_cast<size_t>(i)] - matrix[static_cast<size_t>(place)], 2);
  const double whole = length(matrix);
  return whole > 0 ? std::sqrt(sum) / whole : 0;
}

// The bond between the columns of a matrix and its rows.
size_t middle_of(const RankLayer& layer) { return layer.in_modes.size() - 1; }

// At `ranks`, or with `most_error` at the smallest ones that keep to it.
TrainOfMatrix train_at(const RankLayer& layer, const std::vector<double>& matrix, const std::vector<int64_t>& ranks,
                       std::optional<double> most_error) {
  const std::unique_ptr<Device> device = whole_cpu();
  Ops& ops = device->ops();
  const TrainPlaces places(layer);
  CHECK(static_cast<int64_t>(matrix.size()) == layer.dense_entries(), layer.name << ": " << matrix.size() << " entries");
  std::vector<double> rest(static_cast<size_t>(places.count()), 0.0);
  for (int64_t i = 0; i < places.count(); ++i)
    if (const int64_t place = places.of(i); place != TrainPlaces::kPadding)
      rest[static_cast<size_t>(i)] = matrix[static_cast<size_t>(place)];
  const double whole = length(rest);

  TrainOfMatrix out;
  double may_go = most_error ? *most_error * whole * (*most_error * whole) : 0;  // of the sum of squares
  const size_t bonds = layer.cores.size() - 1;
  const std::vector<double> shares = most_ranks(layer);
  for (size_t k = 0; k < bonds; ++k) {
    const Shape& shape = layer.cores[k]->shape;
    const int64_t mode = shape.count() / (shape[0] * shape[-1]), rows = (k > 0 ? out.ranks.back() : 1) * mode;
    const int64_t columns = static_cast<int64_t>(rest.size()) / rows;
    int64_t rank = most_error ? std::min(rows, columns) : ranks[k];
    CHECK(rank <= std::min(rows, columns), layer.name << ": rank " << rank << " of " << rows << " x " << columns);
    std::vector<double> basis(static_cast<size_t>(rows * rank)), next(static_cast<size_t>(rank * columns));
    ops.run(op::SingularBasis{on_host(basis, rows, rank), on_host(rest, rows, columns), true});
    ops.gemm(on_host(next, rank, columns), on_host(basis, rows, rank), true, on_host(rest, rows, columns), false);
    if (most_error) {  // each bond that is left has a share of what may still go
      const double before = length(rest);
      const int64_t whole_rank = rank;
      rank = rank_for(next, whole_rank, may_go * shares[k] / std::accumulate(shares.begin() + static_cast<long>(k), shares.end(), 0.0));
      basis = leading(basis, whole_rank, rank);
      next.resize(static_cast<size_t>(rank * columns));
      may_go -= std::max(0.0, before * before - length(next) * length(next));
    }
    out.ranks.push_back(rank);
    out.cores.push_back(std::move(basis));
    rest = std::move(next);
  }
  // What the orthonormal bases leave out is at right angles to what they keep.
  const double kept = length(rest);
  out.error = whole > 0 ? std::sqrt(std::max(0.0, 1 - kept / whole * (kept / whole))) : 0;
  out.cores.push_back(std::move(rest));

  // All cores equally long: training then moves none of them faster than the others.
  double all = 1;
  for (const std::vector<double>& core : out.cores) all *= length(core);
  if (all == 0) return out;
  const double each = std::pow(all, 1 / static_cast<double>(out.cores.size()));
  for (std::vector<double>& core : out.cores) {
    const double factor = each / length(core);
    for (double& value : core) value *= factor;
  }
  return out;
}

std::vector<int64_t> ranks_of(const RankLayer& layer) {
  std::vector<int64_t> ranks;
  for (size_t k = 0; k + 1 < layer.cores.size(); ++k) ranks.push_back(layer.cores[k]->shape[-1]);
  return ranks;
}

}  // namespace

TrainOfMatrix tt_svd(const RankLayer& layer, const std::vector<double>& matrix, std::optional<double> most_error) {
  return train_at(layer, matrix, ranks_of(layer), most_error);
}

bool is_matrix(const RankLayer& layer) { return layer.cores[0]->shape.rank() == 3 && !layer.in_modes.empty(); }

bool is_two_factors(const RankLayer& layer) { return is_matrix(layer) && layer.cores.size() == 2; }

RankChoice rank_choice(const RankLayer& layer, const std::vector<double>& matrix, const GradientMoments* moments) {
  CHECK(is_two_factors(layer), layer.name);
  RankChoice choice{.costs = costs_of_ranks(matrix, layer.rows, layer.columns, moments)};
  choice.each = layer.mode_sizes[0] + layer.mode_sizes[1];
  // Factors of a higher rank would be larger than the matrix.
  choice.most = std::clamp<int64_t>(layer.dense_entries() / choice.each, 1, std::ssize(choice.costs));
  return choice;
}

TrainOfMatrix two_factors(const RankLayer& layer, const std::vector<double>& matrix, int64_t rank) {
  CHECK(is_two_factors(layer), layer.name);
  return train_at(layer, matrix, {rank}, {});
}

TrainByGradients tt_svd(const RankLayer& layer, const std::vector<double>& matrix, const GradientMoments& moments, int64_t rank) {
  CHECK(is_matrix(layer), layer.name);
  CHECK(rank == 0 || is_two_factors(layer), layer.name);
  std::vector<int64_t> ranks = ranks_of(layer);
  int64_t& middle = ranks[middle_of(layer)];
  if (rank > 0) middle = rank;
  const NearestOfRank nearest = nearest_of_rank(matrix, layer.rows, layer.columns, std::min({middle, layer.rows, layer.columns}), moments);
  TrainByGradients out{train_at(layer, nearest.matrix, ranks, {}), nearest.error};
  out.train.error = error_of(layer, out.train, matrix);
  return out;
}

}  // namespace comera
