// Lookups in tables, where sequences lie, and the rows of first tokens.
#pragma once
#include <optional>

#include "core/ops/op.h"

namespace comera {
namespace op {

// y (T, D) = or += table (V, D) at ids (T), and then += `more`, another table at its ids.
struct GatherRows {
  static constexpr const char* name = "gather_rows";
  Tensor y, table, ids;
  bool accumulate = false;
  struct More {
    Tensor table, ids;
  };
  std::optional<More> more = {};
  static void tensors(auto& a, auto& see) {
    if (a.accumulate)
      see.inout(a.y);
    else
      see.out(a.y);
    see.in(a.table, a.ids);
    if (a.more) see.in(a.more->table, a.more->ids);
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
// The same without most rows that no id points at: drows (N, D), N = min(T, V), and rows (N). Where T < V equal ids have one place, that of
// the first of them in ascending order of ids, else each id has the place id. There rows has the id and drows the sum; elsewhere rows is -1
// and drows 0.
struct ScatterDistinctRows {
  static constexpr const char* name = "scatter_distinct_rows";
  Tensor drows, rows, dy, ids;
  int64_t table_rows = 0;  // V
  static void tensors(auto& a, auto& see) {
    see.out(a.drows, a.rows);
    see.in(a.dy, a.ids);
  }
  void check() const;
};
struct TakeRows {  // y (T, D) = table (V, D) at rows (T); 0 where rows is -1
  static constexpr const char* name = "take_rows";
  Tensor y, table, rows;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.table, a.rows);
  }
  void check() const;
  Work work(double) const;
};
struct PutRows {  // table (V, D) at rows (T) = y (T, D), nothing where rows is -1; no row is there twice
  static constexpr const char* name = "put_rows";
  Tensor table, y, rows;
  static void tensors(auto& a, auto& see) {
    see.inout(a.table);
    see.in(a.y, a.rows);
  }
  void check() const;
  Work work(double) const;
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
struct EqualSequences {  // starts[s] = s length, lengths[s] = length (S, i32): sequences of one length, back to back
  static constexpr const char* name = "equal_sequences";
  Tensor starts, lengths;
  int64_t length = 1;
  static void tensors(auto& a, auto& see) { see.out(a.starts, a.lengths); }
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

#define COMERA_TABLE_OPS(OP) \
  OP(GatherRows)             \
  OP(ScatterRows)            \
  OP(ScatterDistinctRows)    \
  OP(TakeRows) OP(PutRows) OP(FirstTokens) OP(FirstTokensBackward) OP(EqualSequences) OP(TtmLookup) OP(TtmLookupBackward)

}  // namespace comera
