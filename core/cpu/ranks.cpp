// Rank vectors: the masked cores, and the objective that makes ranks shrink (core/ops/rank_math.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"
#include "core/ops/rank_math.h"

namespace comera {

namespace {

// A buffer of the calling thread that only grows. One use at a time.
template <class T, int kUse>
T* scratch(int64_t count) {
  thread_local std::vector<T> buffer;
  if (static_cast<int64_t>(buffer.size()) < count) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

// thr(D): the factors along the last axis of a core.
template <class T>
const T* factors(const Tensor& d, const StepScalars& step) {
  const T* from = d.data<T>();
  T* out = scratch<T, 0>(d.count());
  for (int64_t b = 0; b < d.count(); ++b) out[b] = alive(static_cast<double>(from[b]), step) ? from[b] : T(0);
  return out;
}

template <class T>
void multiply_rows(ThreadPool& pool, T* out, const T* in, const T* factor, int64_t rows, int64_t r) {
  pool.parallel_for(rows, std::max<int64_t>(1, kElementGrain / r), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t b = 0; b < r; ++b) out[row * r + b] = in[row * r + b] * factor[b];
  });
}

void copy_unless_same(const Tensor& to, const Tensor& from) {
  if (to.raw() != from.raw() && to.count() > 0) std::memcpy(to.raw(), from.raw(), static_cast<size_t>(to.bytes()));
}

// ---- masked cores -------------------------------------------------------------------------------------------------
void mask(ThreadPool& pool, const RankMaskArgs& p, const StepScalars& scalars) {
  if (scalars.pruning == 0) return copy_unless_same(p.e, p.u);
  if (p.u.count() == 0) return;
  by_float_type(p.u, [&](auto type) {
    using T = decltype(type);
    const int64_t r = p.d.count();
    multiply_rows(pool, p.e.data<T>(), p.u.data<T>(), factors<T>(p.d, scalars), p.u.count() / r, r);
  });
}

void mask_backward(ThreadPool& pool, const RankMaskBackwardArgs& p, const StepScalars& scalars) {
  const int64_t r = p.d.count();
  by_float_type(p.u, [&](auto type) {
    using T = decltype(type);
    T* sum = p.dd.data<T>();
    std::fill(sum, sum + r, T(0));
    if (scalars.pruning == 0) return copy_unless_same(p.du, p.de);
    if (p.u.count() == 0) return;
    const T *factor = factors<T>(p.d, scalars), *grad = p.de.data<T>(), *core = p.u.data<T>();
    const int64_t rows = p.u.count() / r;
    // Partial sums over blocks of rows whose borders depend on the shape alone, then in double over the blocks.
    const int64_t block = std::max<int64_t>(1, kElementGrain / r), blocks = ceil_div(rows, block);
    T* partial = scratch<T, 1>(blocks * r);
    pool.parallel_for(blocks, 1, [=](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* out = partial + k * r;
        std::fill(out, out + r, T(0));
        for (int64_t row = k * block; row < std::min(rows, (k + 1) * block); ++row)
          for (int64_t b = 0; b < r; ++b) out[b] += grad[row * r + b] * core[row * r + b];
      }
    });
    for (int64_t b = 0; b < r; ++b) {
      double total = 0;
      for (int64_t k = 0; k < blocks; ++k) total += static_cast<double>(partial[k * r + b]);
      if (alive(static_cast<double>(p.d.data<T>()[b]), scalars)) sum[b] = static_cast<T>(total);
    }
    multiply_rows(pool, p.du.data<T>(), grad, factor, rows, r);  // last: dU may be dE
  });
}

}  // namespace

void CpuOps::body(const op::RankMask& args) {
  const StepScalars& scalars = scalars_in(args.step);
  for (const RankMaskArgs& p : args.all) mask(pool_, p, scalars);
}

void CpuOps::body(const op::RankMaskBackward& args) {
  const StepScalars& scalars = scalars_in(args.step);
  for (const RankMaskBackwardArgs& p : args.all) mask_backward(pool_, p, scalars);
}

// ---- the objective ------------------------------------------------------------------------------------------------
namespace {

template <class T>
Bonds bonds_of(const RankTable& table, const StepScalars& step) {
  const int64_t bonds = table.bond_begin.count() - 1;
  Bonds out{.layers = table.layer_bond.count() - 1,
            .bond_begin = table.bond_begin.data<int>(),
            .layer_bond = table.layer_bond.data<int>(),
            .modes = table.mode_sizes.data<int>(),
            .live = scratch<double, 2>(3 * bonds)};
  out.norm = out.live + bonds;
  out.weak = out.norm + bonds;
  const T* d = table.ranks.data<T>();
  for (int bond = 0; bond < static_cast<int>(bonds); ++bond) out.look_at(bond, d, step);
  return out;
}

Bonds bonds_of(const RankTable& table, const StepScalars& step) {
  if (!table.ranks) return {};
  return table.ranks.dtype() == DType::f32 ? bonds_of<float>(table, step) : bonds_of<double>(table, step);
}

RankTotals totals_of(const Bonds& bonds) {
  RankTotals totals;
  for (int64_t layer = 0; layer < bonds.layers; ++layer) totals.add(bonds, layer);
  return totals;
}

}  // namespace

void CpuOps::body(const op::RankObjective& args) {
  const StepScalars& scalars = scalars_in(args.step);
  const Bonds bonds = bonds_of(args.table, scalars);
  set_rank_results(results_in(args.results), scalars, totals_of(bonds), bonds.sum, bonds.count);
}

void CpuOps::body(const op::RankObjectiveBackward& args) {
  const StepScalars& scalars = scalars_in(args.step);
  const double weight = results_in(args.results).rho_weight;
  if (scalars.pruning == 0 || weight == 0) return;
  const Bonds bonds = bonds_of(args.table, scalars);
  const RankPush push{weight, bonds.count, totals_of(bonds).live_slope};
  if (!push.any(scalars)) return;
  by_float_type(args.dranks, [&](auto type) {
    using T = decltype(type);
    const T *d = args.table.ranks.data<T>(), *layer_weight = args.table.layer_weight.data<T>();
    T* grad = args.dranks.data<T>();
    for (int64_t layer = 0; layer < bonds.layers; ++layer) {
      if (layer_weight[layer] == T(0) || !push.reaches(bonds, layer, scalars)) continue;
      for (int bond = bonds.first(layer); bond < bonds.last(layer); ++bond) {
        const double size = push.size(bonds, layer, bond, static_cast<double>(layer_weight[layer]), scalars);
        for (int b = bonds.bond_begin[bond]; b < bonds.bond_begin[bond + 1]; ++b)
          if (const double add = push.of_entry(bonds, bond, static_cast<double>(d[b]), size, scalars); add != 0)
            grad[b] = static_cast<T>(static_cast<double>(grad[b]) + add);
      }
    }
  });
}

// ---- norms of cores (paper mode) and gradients ----------------------------------------------------------------------------
void CpuOps::body(const op::SumOfSquares& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* in = args.x.data<T>();
    const int64_t count = args.x.count(), blocks = ceil_div(count, kElementGrain);
    double* partial = scratch<double, 2>(blocks);
    pool_.parallel_for(blocks, 1, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        constexpr int kLanes = 8;  // sums side by side: vectorised, and the same on every machine
        double lane[kLanes] = {};
        const int64_t first = block * kElementGrain, last = std::min(count, first + kElementGrain);
        int64_t i = first;
        for (; i + kLanes <= last; i += kLanes)
          for (int l = 0; l < kLanes; ++l) lane[l] += static_cast<double>(in[i + l]) * static_cast<double>(in[i + l]);
        for (; i < last; ++i) lane[0] += static_cast<double>(in[i]) * static_cast<double>(in[i]);
        partial[block] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
      }
    });
    double total = 0;
    for (int64_t block = 0; block < blocks; ++block) total += partial[block];
    StepResults& results = results_in(args.results);
    (args.of_gradients ? results.grad_norm2 : results.core_norm2) += total;
  });
}

void CpuOps::body(const op::CorePenaltyBackward& args) {
  const StepScalars& scalars = scalars_in(args.step);
  if (scalars.paper == 0 || scalars.beta == 0) return;
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    const T factor = static_cast<T>(2 * scalars.beta);
    T* out = args.dw.data<T>();
    const T* in = args.w.data<T>();
    pool_.parallel_for(args.w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] += factor * in[i];
    });
  });
}

}  // namespace comera
