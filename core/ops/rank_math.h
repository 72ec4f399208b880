// Rank vectors: the masked cores, and the objective that makes ranks shrink (METHODS.md 1.4, 1.5, 1.7).
//
// An entry is alive when it is > threshold, compared in double. S counts every mode of a core (rows and columns of a
// TTM core); a layer with a dead bond outputs its bias only, so its whole term leaves S.
// What is minimised is always   ce_weight * ce + rho_weight * penalty [+ beta ||G||^2 in paper mode],   with
//   reference: penalty = rho, the mean of the live entries.
//     early  ce_weight 1, rho_weight rank_weight.
//     late   lambda = (ce - F0) / ce < (S - S0) / S;  ce_weight = late_loss_weight + late_weight (1 - lambda),
//            rho_weight = rank_weight + late_weight lambda.  While pause_rank_push is set, lambda is 0 (in paper mode too).
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
// Written once for the CPU and the CUDA bodies.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/base/hd.h"
#include "core/ops/step_block.h"

namespace comera {

HD bool alive(double d, const StepScalars& step) { return d > step.threshold; }

// The live entries of each bond: what all the formulas are made of.
struct Bonds {
  int64_t layers = 0;
  const int *bond_begin = nullptr, *layer_bond = nullptr, *modes = nullptr;
  double* live = nullptr;  // (bonds) number of live entries
  double* norm = nullptr;  // (bonds) their L1 norm
  double* weak = nullptr;  // (bonds) that of those below their mean
  double sum = 0;          // of all live entries
  double count = 0;

  HD int first(int64_t layer) const { return layer_bond[layer]; }
  HD int last(int64_t layer) const { return layer_bond[layer + 1]; }
  HD const int* modes_of(int64_t layer) const { return modes + layer_bond[layer] + layer; }
  HD bool whole(int64_t layer) const {
    bool all = true;
    for (int bond = first(layer); bond < last(layer); ++bond) all &= live[bond] != 0;
    return all;
  }
  HD bool is_weak(int bond, double value) const { return std::fabs(value) * live[bond] < norm[bond]; }
  // dS / dR of a bond: l_k x_{k-1} + l_{k+1} x_{k+1}.
  HD double slope(int64_t layer, int bond, const double* value) const {
    const int* mode = modes_of(layer) + (bond - first(layer));
    return mode[0] * (bond == first(layer) ? 1 : value[bond - 1]) + mode[1] * (bond + 1 == last(layer) ? 1 : value[bond + 1]);
  }
  // Of a layer that is in S: sum over its bonds of the slope at the live counts times x.
  HD void add_slopes(int64_t layer, const double* value, double& total) const {
    for (int bond = first(layer); bond < last(layer); ++bond) total += slope(layer, bond, live) * value[bond];
  }
  // sum_k l_k x_{k-1} x_k with x the value of each bond, 1 at both ends.
  HD double size(int64_t layer, const double* value) const {
    double total = 0, before = 1;
    const int* mode = modes_of(layer);
    for (int bond = first(layer); bond < last(layer); ++bond) {
      total += *mode++ * before * value[bond];
      before = value[bond];
    }
    return total + *mode * before;
  }

  // f(value) for the entries d of a bond, in order. On a GPU their reads are under way together.
  template <class T, class F>
  HD void each_entry(int bond, const T* d, const F& f) const {
    constexpr int kAtOnce = 8;
    const int end = bond_begin[bond + 1];
    for (int b = bond_begin[bond]; b < end; b += kAtOnce) {
      T values[kAtOnce] = {};
      for (int l = 0; l < kAtOnce; ++l)
        if (b + l < end) values[l] = d[b + l];
      for (int l = 0; l < kAtOnce; ++l)
        if (b + l < end) f(static_cast<double>(values[l]));
    }
  }

  // Looks at the entries d of a bond: its numbers, and its share of `sum` and `count`.
  template <class T>
  HD void look_at(int bond, const T* d, const StepScalars& step) {
    double of_bond = 0, size = 0, of_weak = 0;
    each_entry(bond, d, [&](double value) {
      if (step.pruning != 0 && !alive(value, step)) return;
      of_bond += 1;
      size += std::fabs(value);
      sum += value;
    });
    live[bond] = of_bond;
    norm[bond] = size;
    count += of_bond;
    if (step.selective != 0)
      each_entry(bond, d, [&](double value) {
        if (alive(value, step) && is_weak(bond, value)) of_weak += std::fabs(value);
      });
    weak[bond] = of_weak;
  }
};

// Sums over the layers that are in S, of what the bonds come to.
struct RankTotals {
  double entries = 0;       // size at the live counts
  double norm_entries = 0;  // size at the norms
  double live_slope = 0, weak_slope = 0;

  HD void add(const Bonds& bonds, int64_t layer) {
    if (!bonds.whole(layer)) return;
    entries += bonds.size(layer, bonds.live);
    norm_entries += bonds.size(layer, bonds.norm);
    bonds.add_slopes(layer, bonds.live, live_slope);
    bonds.add_slopes(layer, bonds.weak, weak_slope);
  }
};

HD void choose_weights(StepResults& out, const StepScalars& step) {
  const bool paper = step.paper != 0, late = step.late != 0, pushing = late && step.pause_rank_push == 0;
  if (paper) {
    if (pushing) out.lambda = step.late_w1 * (out.ce - step.loss_target) < step.late_w2 * (out.entries - step.size_target) ? 1 : 0;
    out.ce_weight = late ? step.rank_weight + step.late_w1 * (1 - out.lambda) : 1;
    out.rho_weight = late ? step.rank_weight + step.late_w2 * out.lambda : step.gamma;
    return;
  }
  if (pushing && out.entries > 0)
    out.lambda = (out.ce - step.loss_target) / out.ce < (out.entries - step.size_target) / out.entries ? 1 : 0;
  out.ce_weight = late ? step.late_loss_weight + step.late_weight * (1 - out.lambda) : 1;
  out.rho_weight = late ? step.rank_weight + step.late_weight * out.lambda : step.rank_weight;
}

// The results of a step, from its ce and core_norm2 and what the ranks come to.
HD void set_rank_results(StepResults& out, const StepScalars& step, const RankTotals& totals, double live_sum, double live_count) {
  const bool paper = step.paper != 0, selective = step.selective != 0;
  out.entries = totals.entries;
  out.rho = out.surrogate = out.lambda = 0;
  out.ce_weight = 1;
  out.rho_weight = 0;
  if (step.pruning != 0) {
    if (live_count > 0) out.rho = live_sum / live_count;
    if (paper) out.surrogate = totals.norm_entries;
    if (selective && totals.live_slope > 0) out.surrogate = totals.weak_slope / totals.live_slope;
    choose_weights(out, step);
  }
  out.loss =
      out.ce_weight * out.ce + out.rho_weight * (paper || selective ? out.surrogate : out.rho) + (paper ? step.beta * out.core_norm2 : 0);
}

// What the gradient of a step's penalty is made of.
struct RankPush {
  double weight = 0;  // of the penalty in the loss
  double live_count = 0, live_slope = 0;

  HD bool any(const StepScalars& step) const { return step.pruning != 0 && weight != 0 && live_count != 0; }
  // Whether a layer's ranks are in the penalty at all.
  HD bool reaches(const Bonds& bonds, int64_t layer, const StepScalars& step) const {
    return (step.paper == 0 && step.selective == 0) || bonds.whole(layer);
  }
  // Of a bond's entries, but for their sign. d rho / dD = 1 / count; of a weak entry s / live_slope;
  // d S^ / dD_k = sign(D_k) (l_k ||D_{k-1}|| + l_{k+1} ||D_{k+1}||), end norms 1.
  HD double size(const Bonds& bonds, int64_t layer, int bond, double layer_weight, const StepScalars& step) const {
    const double slope = step.paper != 0       ? bonds.slope(layer, bond, bonds.norm)
                         : step.selective != 0 ? bonds.slope(layer, bond, bonds.live) / live_slope
                                               : 1 / live_count;
    return weight * layer_weight * slope;
  }
  // Of one entry `value` of the bond.
  HD double of_entry(const Bonds& bonds, int bond, double value, double size, const StepScalars& step) const {
    if (!alive(value, step) || (step.selective != 0 && !bonds.is_weak(bond, value))) return 0;
    return (step.paper != 0 || step.selective != 0) && value < 0 ? -size : size;  // a threshold under 0 keeps negative entries
  }
};

}  // namespace comera
