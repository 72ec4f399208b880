// Rank vectors: the masked cores, and the objective that makes ranks shrink (core/ops/rank_math.h).
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
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

// ---- masked cores -------------------------------------------------------------------------------------------------
// Units of a core: its rows, along the last axis.
template <class Args>
Units core_rows(const Args& p) {
  const int64_t r = p.d.count();
  return {r == 0 ? 0 : p.u.count() / r, std::max<int64_t>(1, r)};
}

template <class T>
void multiply_rows(T* out, const T* in, const T* factor, int64_t begin, int64_t end, int64_t r) {
  for (int64_t row = begin; row < end; ++row)
    for (int64_t b = 0; b < r; ++b) out[row * r + b] = in[row * r + b] * factor[b];
}

template <class T>
void mask(ThreadPool& pool, std::span<const RankMaskArgs> all, const StepScalars& scalars) {
  for_units(pool, all, kElementGrain, core_rows<RankMaskArgs>, [&](const RankMaskArgs& p, int64_t begin, int64_t end) {
    const int64_t r = p.d.count();
    const T* from = p.u.data<T>();
    T* to = p.e.data<T>();
    if (scalars.pruning != 0)
      multiply_rows(to, from, factors<T>(p.d, scalars), begin, end, r);
    else if (to != from)
      std::copy(from + begin * r, from + end * r, to + begin * r);
  });
}

// Partial sums of dD over blocks of rows whose borders depend on the shape alone, and dU, then the sums in double over the blocks.
template <class T>
void mask_backward(ThreadPool& pool, std::span<const RankMaskBackwardArgs> all, const StepScalars& scalars) {
  const auto rows_of_block = [](const RankMaskBackwardArgs& p) { return std::max<int64_t>(1, kElementGrain / p.d.count()); };
  const auto blocks_of = [&](const RankMaskBackwardArgs& p) -> Units {
    const Units rows = core_rows(p);
    if (rows.count == 0) return rows;
    const int64_t block = rows_of_block(p);
    return {ceil_div(rows.count, block), std::min(rows.count, block) * rows.cost};
  };
  int64_t* const first = scratch<int64_t, 3>(static_cast<int64_t>(all.size()));  // where a core's partial sums begin
  int64_t room = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    first[i] = room;
    room += blocks_of(all[i]).count * all[i].d.count();
  }
  T* const partial = scratch<T, 1>(room);
  for_units(pool, all, kElementGrain, blocks_of, [&](const RankMaskBackwardArgs& p, int64_t begin, int64_t end) {
    const int64_t r = p.d.count(), rows = core_rows(p).count, block = rows_of_block(p);
    const T *grad = p.de.data<T>(), *core = p.u.data<T>();
    if (scalars.pruning == 0) {
      if (p.du.raw() != p.de.raw())
        std::copy(grad + begin * block * r, grad + std::min(rows, end * block) * r, p.du.data<T>() + begin * block * r);
      return;
    }
    const T* factor = factors<T>(p.d, scalars);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t last = std::min(rows, (k + 1) * block);
      T* out = partial + first[&p - all.data()] + k * r;
      std::fill(out, out + r, T(0));
      for (int64_t row = k * block; row < last; ++row)
        for (int64_t b = 0; b < r; ++b) out[b] += grad[row * r + b] * core[row * r + b];
      multiply_rows(p.du.data<T>(), grad, factor, k * block, last, r);  // last: dU may be dE
    }
  });
  for (size_t i = 0; i < all.size(); ++i) {
    const RankMaskBackwardArgs& p = all[i];
    const int64_t r = p.d.count(), blocks = scalars.pruning == 0 ? 0 : blocks_of(p).count;
    T* const sum = p.dd.data<T>();
    for (int64_t b = 0; b < r; ++b) {
      double total = 0;
      for (int64_t k = 0; k < blocks; ++k) total += static_cast<double>(partial[first[i] + k * r + b]);
      sum[b] = alive(static_cast<double>(p.d.data<T>()[b]), scalars) ? static_cast<T>(total) : T(0);
    }
  }
}

}  // namespace

void CpuOps::body(const op::RankMask& args) {
  by_float_type(args.all[0].u, [&](auto type) { mask<decltype(type)>(pool_, args.all.view(), scalars_in(args.step)); });
}

void CpuOps::body(const op::RankMaskBackward& args) {
  by_float_type(args.all[0].u, [&](auto type) { mask_backward<decltype(type)>(pool_, args.all.view(), scalars_in(args.step)); });
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
