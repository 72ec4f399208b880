// Rank vectors: masked cores, the rank objective and its gradients.
#pragma once
#include "core/ops/op.h"

namespace comera {

// The rank structure of all tensorised layers, for the rank objective. Bonds lie one after another in `ranks`.
// All i32: bond_begin (bonds+1) offsets into ranks; layer_bond (layers+1) first bond of each layer;
// mode_sizes: the l_k of all layers one after another (layer with b bonds has b+1 modes).
struct RankTable {
  Tensor ranks;         // (N) float, every rank parameter
  Tensor bond_begin;    // (bonds + 1)
  Tensor layer_bond;    // (layers + 1)
  Tensor mode_sizes;    // (bonds + layers)
  Tensor layer_weight;  // (layers) float: factor on the penalty's gradient; 0 = locked
  static void tensors(auto& a, auto& see) { see.in(a.ranks, a.bond_begin, a.layer_bond, a.mode_sizes, a.layer_weight); }
};

// E (a, l, r) = U * thr(D) along the last axis: thr(d) = d if d > threshold else 0; E = U when pruning is off. E may be U.
struct RankMaskArgs {
  Tensor e, u, d;
  static void tensors(auto& p, auto& see) {
    see.in_place(p.e);
    see.in(p.u, p.d);
  }
};
// dU = dE * thr(D); dD[b] = [D[b] > threshold] * sum over a, l of dE * U. Both "="; dU may be dE.
struct RankMaskBackwardArgs {
  Tensor du, dd, de, u, d;
  static void tensors(auto& p, auto& see) {
    see.in_place(p.du);
    see.out(p.dd);
    see.in(p.de, p.u, p.d);
  }
};

namespace op {

struct RankMask {
  static constexpr const char* name = "rank_mask";
  Items<RankMaskArgs> all;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
struct RankMaskBackward {
  static constexpr const char* name = "rank_mask_backward";
  Items<RankMaskBackwardArgs> all;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
// From results.ce and the ranks: counts, rho, S (S^ in paper mode), lambda, the loss and the two weights.
// core_norm2 is read as left there by sum_of_squares. results is the StepResults block as a u8 tensor.
struct RankObjective {
  static constexpr const char* name = "rank_objective";
  Tensor results;
  RankTable table = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.results);
    RankTable::tensors(a.table, see);
    see.step(a.step);
  }
  void check() const;
  Work work(double) const;
};
// dranks (N) += gradient of the penalty times results.rho_weight times layer_weight.
struct RankObjectiveBackward {
  static constexpr const char* name = "rank_objective_backward";
  Tensor dranks;
  RankTable table = {};
  Tensor results, step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.dranks);
    RankTable::tensors(a.table, see);
    see.in(a.results);
    see.step(a.step);
  }
  void check() const;
  Work work(double) const;
};
struct SumOfSquares {  // results.core_norm2 += ||x||^2, or results.grad_norm2
  static constexpr const char* name = "sum_of_squares";
  Tensor results, x;
  bool of_gradients = false;
  static void tensors(auto& a, auto& see) {
    see.inout(a.results);
    see.in(a.x);
  }
  void check() const;
  Work work(double) const;
};
struct CorePenaltyBackward {  // dw += 2 beta w, beta from the step block (paper mode)
  static constexpr const char* name = "core_penalty_backward";
  Tensor dw, w, step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.dw);
    see.in(a.w);
    see.step(a.step);
  }
  void check() const;
};

}  // namespace op

#define COMERA_RANK_OPS(OP) \
  OP(RankMask) OP(RankMaskBackward) OP(RankObjective) OP(RankObjectiveBackward) OP(SumOfSquares) OP(CorePenaltyBackward)

}  // namespace comera
