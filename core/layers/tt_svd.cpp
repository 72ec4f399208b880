// TT-SVD (Oseledets 2011, algorithm 1): bond after bond, the leading left singular vectors of what is left are the next core.
#include <algorithm>
#include <cmath>
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

}  // namespace

TrainOfMatrix tt_svd(const RankLayer& layer, const std::vector<double>& matrix) {
  const std::unique_ptr<Device> device = open_cpu_device(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  Ops& ops = device->ops();
  const TrainPlaces places(layer);
  CHECK(static_cast<int64_t>(matrix.size()) == layer.dense_entries(), layer.name << ": " << matrix.size() << " entries");
  std::vector<double> rest(static_cast<size_t>(places.count()), 0.0);
  for (int64_t i = 0; i < places.count(); ++i)
    if (const int64_t place = places.of(i); place != TrainPlaces::kPadding)
      rest[static_cast<size_t>(i)] = matrix[static_cast<size_t>(place)];
  const double whole = length(rest);

  TrainOfMatrix out;
  for (size_t k = 0; k + 1 < layer.cores.size(); ++k) {
    const Shape& shape = layer.cores[k]->shape;
    const int64_t rank = shape[-1], rows = shape.count() / rank, columns = static_cast<int64_t>(rest.size()) / rows;
    CHECK(rank <= std::min(rows, columns), layer.name << ": rank " << rank << " of " << rows << " x " << columns);
    std::vector<double> basis(static_cast<size_t>(rows * rank)), next(static_cast<size_t>(rank * columns));
    ops.run(op::SingularBasis{on_host(basis, rows, rank), on_host(rest, rows, columns), true});
    ops.gemm(on_host(next, rank, columns), on_host(basis, rows, rank), true, on_host(rest, rows, columns), false);
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

}  // namespace comera
