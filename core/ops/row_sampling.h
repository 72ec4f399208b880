// Rows of a matrix that stand for all of it: of an activation in a product with gradients (WTA-CRS, METHODS.md 11), of a gradient (Grass,
// METHODS.md 8).
#pragma once
#include "core/ops/op.h"

namespace comera {

struct RowDraws {
  int power = 1;          // probabilities are in proportion to |x_i|^power: 0, 1 or 2
  bool distinct = false;  // without replacement
  bool by_part = true;    // each part of a batch has draws of its own
};

namespace op {

// k of the T rows of x (T, D): first the `certain` largest, in descending order of |x_i|, then k - certain that are drawn with replacement
// from the others, with probabilities p_j in proportion to |x_j|. The sum over the k rows of weight * row_i(d)^T row_i(x) has the
// mean d^T x for every d (T, N): weights are 1 of certain rows, and (rest of the probability) / ((k - certain) p_j) of drawn ones. certain
// = -1: the number from 0 to k - 1 with the least (rest of the probability) / (k - certain), the smallest if there are several.
// Without replacement all k are drawn (certain = 0), one after another, each in proportion to p_j among those that are left; weights are 1.
struct SampleRows {
  static constexpr const char* name = "sample_rows";
  Tensor index, weight;  // (k), i32 and float; k <= T
  Tensor x;
  int64_t certain = -1;
  uint32_t site = 0;
  Tensor step;
  RowDraws draws = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.index, a.weight);
    see.in(a.x);
    see.step(a.step);
  }
  void check() const;
};
// y (k, N): row i is weight_i x[index_i], of x (T, N). Without `weight` (k) the row as it is. `columns`: the same of the columns of
// x (N, T), to y (N, k).
struct PickRows {
  static constexpr const char* name = "pick_rows";
  Tensor y, x, index, weight;
  bool columns = false;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x, a.index, a.weight);
  }
  void check() const;
  Work work(double bytes) const;
};
// The other way: row index_i of x (T, N) += factor weight_i u_i, of u (k, N); `columns`: the same of the columns of x (N, T), u (N, k).
// What goes to one row is added in the order of i.
struct AddRows {
  static constexpr const char* name = "add_rows";
  Tensor x;
  double factor = 1;
  Tensor u, index, weight;
  bool columns = false;
  static void tensors(auto& a, auto& see) {
    see.inout(a.x);
    see.in(a.u, a.index, a.weight);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

#define COMERA_ROW_SAMPLING_OPS(OP) OP(SampleRows) OP(PickRows) OP(AddRows)

}  // namespace comera
