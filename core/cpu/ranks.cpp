// Rank vectors: the masked cores, and the objective that makes ranks shrink (METHODS.md 1.4 and 1.5).
//
// An entry is alive when it is > threshold, compared in double. S counts every mode of a core (rows and columns of a
// TTM core); a layer with a dead bond outputs its bias only, so its whole term leaves S.
// What is minimised is always   ce_weight * ce + rho_weight * penalty [+ beta ||G||^2 in paper mode],   with
//   reference: penalty = rho, the mean of the live entries.
//     early  ce_weight 1, rho_weight rank_weight.
//     late   lambda = (ce - F0) / ce < (S - S0) / S;  ce_weight = late_ce_weight + late_push (1 - lambda),
//            rho_weight = rank_weight + late_push lambda.  While the step says `rest`, lambda is 0 (in paper mode too).
//   selective: penalty = sum of s D over the weak entries / sum of s over the live ones. Weak: below the mean of the live
//     entries of their bond; s = dS/dR = l_k R_{k-1} + l_{k+1} R_{k+1} of the bond, the entries that leave S with one of its
//     own. Both are constants of the step. All else as in reference mode. So the strong half of a bond keeps the scale of
//     the layer, a bond's last entry is never pushed, and small bonds are left alone while large ones shrink. Layers with
//     a dead bond have left S and this sum.
//   paper: penalty = S^, which is S with ||D_k||_1 over the live entries in place of their number. Dead entries and
//     layers are left out: the network does not see them, and pulling them would keep their moments alive for nothing.
//     early  ce_weight 1, rho_weight gamma.
//     late   lambda = w1 (ce - F0) < w2 (S - S0), S and S0 in entries as the formula has it (w2 = 1 / S gives the
//            relative form);  ce_weight = rank_weight + w1 (1 - lambda),  rho_weight = rank_weight + w2 lambda:
//            rank_weight is the small weight of F + S outside the maximum. Its constants -w1 F0, -w2 S0 are not in `loss`.
// Pruning off: the loss alone (and the core penalty, which does not depend on ranks); S counts whole bonds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

// A buffer of the calling thread, only ever grown. One use at a time.
template <class T, int kUse>
T* scratch(int64_t count) {
  thread_local std::vector<T> buffer;
  if (static_cast<int64_t>(buffer.size()) < count) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

bool alive(double d, const StepScalars& step) { return d > step.threshold; }

// thr(D): what multiplies the last axis of a core.
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

}  // namespace

// ---- masked cores -------------------------------------------------------------------------------------------------
void CpuOps::do_rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  const int64_t r = d.count();
  if (scalars.pruning == 0) return copy_unless_same(e, u);
  if (u.count() == 0) return;
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    multiply_rows(pool_, e.data<T>(), u.data<T>(), factors<T>(d, scalars), u.count() / r, r);
  });
}

void CpuOps::do_rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d,
                                   const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  const int64_t r = d.count();
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    T* sum = dd.data<T>();
    std::fill(sum, sum + r, T(0));
    if (scalars.pruning == 0) return copy_unless_same(du, de);
    if (u.count() == 0) return;
    const T *factor = factors<T>(d, scalars), *grad = de.data<T>(), *core = u.data<T>();
    const int64_t rows = u.count() / r;
    // Partial sums over blocks of rows whose borders depend on the shape alone, then in double over the blocks.
    const int64_t block = std::max<int64_t>(1, kElementGrain / r), blocks = (rows + block - 1) / block;
    T* partial = scratch<T, 1>(blocks * r);
    pool_.parallel_for(blocks, 1, [=](int64_t begin, int64_t end) {
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
      if (alive(static_cast<double>(d.data<T>()[b]), scalars)) sum[b] = static_cast<T>(total);
    }
    multiply_rows(pool_, du.data<T>(), grad, factor, rows, r);  // last: dU may be dE
  });
}

// ---- the objective ------------------------------------------------------------------------------------------------
namespace {

// The live entries of each bond: what all the formulas are made of.
struct Bonds {
  int64_t layers = 0;
  const int *bond_begin = nullptr, *layer_bond = nullptr, *modes = nullptr;
  double* live = nullptr;  // (bonds) number of live entries
  double* norm = nullptr;  // (bonds) their L1 norm
  double* weak = nullptr;  // (bonds) that of those below their mean
  double sum = 0;          // of all live entries
  double count = 0;

  int first(int64_t layer) const { return layer_bond[layer]; }
  int last(int64_t layer) const { return layer_bond[layer + 1]; }
  const int* modes_of(int64_t layer) const { return modes + layer_bond[layer] + layer; }
  bool whole(int64_t layer) const {
    for (int bond = first(layer); bond < last(layer); ++bond)
      if (live[bond] == 0) return false;
    return true;
  }
  bool is_weak(int bond, double value) const { return std::abs(value) * live[bond] < norm[bond]; }
  // dS / dR of a bond: l_k x_{k-1} + l_{k+1} x_{k+1}.
  double slope(int64_t layer, int bond, const double* value) const {
    const int* mode = modes_of(layer) + (bond - first(layer));
    return mode[0] * (bond == first(layer) ? 1 : value[bond - 1]) + mode[1] * (bond + 1 == last(layer) ? 1 : value[bond + 1]);
  }
  // Of the layers that are in S: sum over their bonds of the slope at the live counts times x.
  double total_slope(const double* value) const {
    double total = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int bond = first(layer); bond < last(layer) && whole(layer); ++bond) total += slope(layer, bond, live) * value[bond];
    return total;
  }
  // sum_k l_k x_{k-1} x_k with x the value of each bond, 1 at both ends.
  double size(int64_t layer, const double* value) const {
    double total = 0, before = 1;
    const int* mode = modes_of(layer);
    for (int bond = first(layer); bond < last(layer); ++bond) {
      total += *mode++ * before * value[bond];
      before = value[bond];
    }
    return total + *mode * before;
  }
  double total_size(const double* value) const {
    double total = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      if (whole(layer)) total += size(layer, value);
    return total;
  }
};

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
  for (int64_t bond = 0; bond < bonds; ++bond) {
    double live = 0, norm = 0;
    for (int b = out.bond_begin[bond]; b < out.bond_begin[bond + 1]; ++b) {
      const double value = static_cast<double>(d[b]);
      if (step.pruning != 0 && !alive(value, step)) continue;
      live += 1;
      norm += std::abs(value);
      out.sum += value;
    }
    out.live[bond] = live;
    out.norm[bond] = norm;
    out.count += live;
    out.weak[bond] = 0;
    for (int b = out.bond_begin[bond]; b < out.bond_begin[bond + 1] && step.selective != 0; ++b) {
      const double value = static_cast<double>(d[b]);
      if (alive(value, step) && out.is_weak(bond, value)) out.weak[bond] += std::abs(value);
    }
  }
  return out;
}

Bonds bonds_of(const RankTable& table, const StepScalars& step) {
  if (!table.ranks) return {};
  return table.ranks.dtype() == DType::f32 ? bonds_of<float>(table, step) : bonds_of<double>(table, step);
}

void choose_weights(StepResults& out, const StepScalars& step) {
  const bool paper = step.paper != 0, late = step.late != 0, pushing = late && step.rest == 0;
  if (paper) {
    if (pushing) out.lambda = step.late_w1 * (out.ce - step.loss_target) < step.late_w2 * (out.entries - step.size_target) ? 1 : 0;
    out.ce_weight = late ? step.rank_weight + step.late_w1 * (1 - out.lambda) : 1;
    out.rho_weight = late ? step.rank_weight + step.late_w2 * out.lambda : step.gamma;
    return;
  }
  if (pushing && out.entries > 0)
    out.lambda = (out.ce - step.loss_target) / out.ce < (out.entries - step.size_target) / out.entries ? 1 : 0;
  out.ce_weight = late ? step.late_ce_weight + step.late_push * (1 - out.lambda) : 1;
  out.rho_weight = late ? step.rank_weight + step.late_push * out.lambda : step.rank_weight;
}

}  // namespace

void CpuOps::do_rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  StepResults& out = results_in(results);
  const Bonds bonds = bonds_of(table, scalars);
  const bool paper = scalars.paper != 0, selective = scalars.selective != 0;
  out.entries = bonds.total_size(bonds.live);
  out.rho = out.surrogate = out.lambda = 0;
  out.ce_weight = 1;
  out.rho_weight = 0;
  if (scalars.pruning != 0) {
    if (bonds.count > 0) out.rho = bonds.sum / bonds.count;
    if (paper) out.surrogate = bonds.total_size(bonds.norm);
    if (selective && bonds.total_slope(bonds.live) > 0) out.surrogate = bonds.total_slope(bonds.weak) / bonds.total_slope(bonds.live);
    choose_weights(out, scalars);
  }
  out.loss = out.ce_weight * out.ce + out.rho_weight * (paper || selective ? out.surrogate : out.rho) +
             (paper ? scalars.beta * out.core_norm2 : 0);
}

void CpuOps::do_rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  const double weight = results_in(results).rho_weight;
  if (scalars.pruning == 0 || weight == 0) return;
  const Bonds bonds = bonds_of(table, scalars);
  if (bonds.count == 0) return;
  const bool paper = scalars.paper != 0, selective = scalars.selective != 0;
  const double total_slope = selective ? bonds.total_slope(bonds.live) : 0;
  by_float_type(dranks, [&](auto type) {
    using T = decltype(type);
    const T *d = table.ranks.data<T>(), *layer_weight = table.layer_weight.data<T>();
    T* grad = dranks.data<T>();
    for (int64_t layer = 0; layer < bonds.layers; ++layer) {
      if (layer_weight[layer] == T(0) || ((paper || selective) && !bonds.whole(layer))) continue;
      for (int bond = bonds.first(layer); bond < bonds.last(layer); ++bond) {
        // d rho / dD = 1 / count; of a weak entry s / total_slope; d S^ / dD_k = sign(D_k) (l_k ||D_{k-1}|| + l_{k+1} ||D_{k+1}||), end
        // norms 1.
        const double slope = paper       ? bonds.slope(layer, bond, bonds.norm)
                             : selective ? bonds.slope(layer, bond, bonds.live) / total_slope
                                         : 1 / bonds.count;
        const double step_size = weight * static_cast<double>(layer_weight[layer]) * slope;
        for (int b = bonds.bond_begin[bond]; b < bonds.bond_begin[bond + 1]; ++b) {
          const double value = static_cast<double>(d[b]);
          if (!alive(value, scalars) || (selective && !bonds.is_weak(bond, value))) continue;
          const double sign = (paper || selective) && value < 0 ? -1 : 1;  // a threshold under 0 keeps negative entries
          grad[b] = static_cast<T>(static_cast<double>(grad[b]) + sign * step_size);
        }
      }
    }
  });
}

// ---- the norm of the cores, paper mode ----------------------------------------------------------------------------
void CpuOps::do_sum_of_squares(const Tensor& results, const Tensor& x) {
  by_float_type(x, [&](auto type) {
    using T = decltype(type);
    const T* in = x.data<T>();
    const int64_t count = x.count(), blocks = (count + kElementGrain - 1) / kElementGrain;
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
    results_in(results).core_norm2 += total;
  });
}

void CpuOps::do_core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) {
  const StepScalars& scalars = scalars_in(step);
  if (scalars.paper == 0 || scalars.beta == 0) return;
  by_float_type(w, [&](auto type) {
    using T = decltype(type);
    const T factor = static_cast<T>(2 * scalars.beta);
    T* out = dw.data<T>();
    const T* in = w.data<T>();
    pool_.parallel_for(w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] += factor * in[i];
    });
  });
}

}  // namespace comera
