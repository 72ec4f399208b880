// Lookups in tables, and the rows of first tokens.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

struct GatherRows {  // y (T, D) = or += table (V, D) at ids (T)
  static constexpr const char* name = "gather_rows";
  Tensor y, table, ids;
  bool accumulate = false;
  static void tensors(auto& a, auto& see) {
    if (a.accumulate)
      see.inout(a.y);
    else
      see.out(a.y);
    see.in(a.table, a.ids);
  }
  void check() const;
  Work work(double) const;
};
struct ScatterRows {  // dtable (V, D) = 0 + sum of dy (T, D) rows by id; the order of additions does not depend on the thread count
  static constexpr const char* name = "scatter_rows";
  Tensor dtable, dy, ids;
  static void tensors(auto& a, auto& see) {
    see.out(a.dtable);
    see.in(a.dy, a.ids);
  }
  void check() const;
};
struct FirstTokens {  // y (S, D) = x (T, D) at rows starts[s]; zero where lengths[s] is 0
  static constexpr const char* name = "first_tokens";
  Tensor y, x;
  Sequences sequences = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x);
    Sequences::tensors(a.sequences, see);
  }
  void check() const;
  Work work(double) const;
};
struct FirstTokensBackward {  // dx (T, D) = 0, then rows starts[s] = dy (S, D)
  static constexpr const char* name = "first_tokens_backward";
  Tensor dx, dy;
  Sequences sequences = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.dx);
    see.in(a.dy);
    Sequences::tensors(a.sequences, see);
  }
  void check() const;
};
// TTM lookup by merged halves (METHODS.md 1.2): row id = i * m2 + j; y[t] = P[i_t] (n1 x r) Q[j_t] (r x n2).
// P (m1, n1, r), Q (m2, r, n2), ids (T), y (T, n1 * n2). Equal ids are computed once.
struct TtmLookup {
  static constexpr const char* name = "ttm_lookup";
  Tensor y, p, q, ids;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.p, a.q, a.ids);
  }
  void check() const;
  Work work(double bytes) const;
};
struct TtmLookupBackward {  // dP, dQ "=" (zero where no id points)
  static constexpr const char* name = "ttm_lookup_backward";
  Tensor dp, dq, dy, p, q, ids;
  static void tensors(auto& a, auto& see) {
    see.out(a.dp, a.dq);
    see.in(a.dy, a.p, a.q, a.ids);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

#define COMERA_TABLE_OPS(OP) OP(GatherRows) OP(ScatterRows) OP(FirstTokens) OP(FirstTokensBackward) OP(TtmLookup) OP(TtmLookupBackward)

}  // namespace comera
