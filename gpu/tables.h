// Lookups in dense tables and in the merged halves of a TTM table (METHODS.md 1.2), and their gradients. Tokens are sorted by
// row; blocks own rows of the gradient and add in the order of the tokens, so there are no atomics. An id outside the table
// gives NaN.
#pragma once
#include "gpu/column_sums.h"

namespace comera::gpu {

template <class T>
struct GatherRows {
  int64_t tokens, width, rows;
  T* y;
  const T* table;
  const int* ids;
  bool accumulate;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t t = g.block(); t < tokens; t += g.blocks()) {
      const int id = ids[t];
      const bool inside = id >= 0 && id < rows;
      for (int64_t c = g.thread(); c < width; c += g.threads()) {
        const T value = inside ? table[id * width + c] : T(NAN);
        y[t * width + c] = accumulate ? y[t * width + c] + value : value;
      }
    }
  }
};

// ---- tokens by row --------------------------------------------------------------------------------------------------

// The row of each token: id / divisor % rows of the table, or `rows` for an id outside [0, ids).
struct RowKeys {
  const int* ids;
  int ids_end, divisor, rows;
  int *keys, *tokens;
  KERNEL void operator()(int64_t t) const {
    const int id = ids[t];
    keys[t] = id >= 0 && id < ids_end ? id / divisor % rows : rows;
    tokens[t] = static_cast<int>(t);
  }
};

struct SortedTokens {
  const int *keys, *tokens;  // (count) ascending keys, and the token of each
  int64_t count;
  int64_t rows;

  // First entry whose key is at least `key`.
  HD int64_t first(int64_t key) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (keys[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  HD Range of_row(int64_t row) const { return {first(row), first(row + 1)}; }
  HD bool any_outside() const { return count > 0 && keys[count - 1] >= rows; }
};

template <class Machine>
SortedTokens sort_tokens(Machine& machine, const Tensor& ids, int64_t ids_end, int64_t divisor, int64_t rows) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t count = ids.count();
  CHECK(ids_end < kMost && count < kMost, count << " tokens in a table of " << ids_end << " rows");
  int *keys_in = machine.template scratch<int>(count), *tokens_in = machine.template scratch<int>(count);
  int *keys = machine.template scratch<int>(count), *tokens = machine.template scratch<int>(count);
  machine.launch(over_elements(count), Elements<RowKeys>{count,
                                                         {ids.data<int>(), static_cast<int>(ids_end), static_cast<int>(divisor),
                                                          static_cast<int>(rows), keys_in, tokens_in}});
  int bits = 1;
  while (rows >> bits) ++bits;
  machine.sort(keys, tokens, keys_in, tokens_in, count, bits);
  return {keys, tokens, count, rows};
}

// In a table of few rows (segments: 2) several blocks share the tokens of a row.
inline int64_t token_pieces(int64_t rows) { return std::clamp<int64_t>(1024 / std::max<int64_t>(rows, 1), 1, kMostPieces); }

// sum (rows, width): term(row, entry, tokens) is the sum over a range of sorted tokens. partial (pieces, rows, width).
template <class T, class Term>
struct RowSums {
  SortedTokens sorted;
  int64_t width, pieces;
  Term term;
  T* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t item = g.block(); item < sorted.rows * pieces; item += g.blocks()) {
      const int64_t row = item % sorted.rows, piece = item / sorted.rows;
      const Range range = sorted.of_row(row).piece(piece, pieces);
      const bool lost = row == 0 && sorted.any_outside();
      for (int64_t entry = g.thread(); entry < width; entry += g.threads())
        partial[item * width + entry] = lost ? T(NAN) : term(row, entry, sorted.tokens + range.begin, range.end - range.begin);
    }
  }
};

template <class T, class Machine, class Term>
void row_sums(Machine& machine, T* sum, const SortedTokens& sorted, int64_t width, const Term& term) {
  const int64_t pieces = token_pieces(sorted.rows), count = sorted.rows * width;
  T* partial = pieces == 1 ? sum : machine.template scratch<T>(pieces * count);
  machine.launch(over_items(sorted.rows * pieces, width), RowSums<T, Term>{sorted, width, pieces, term, partial});
  if (pieces > 1) machine.launch(over_elements(count), Elements<FoldPieces<T, 1>>{count, {{sum}, partial, count, pieces}});
}

template <class T>
struct RowsOfTokens {
  const T* dy;
  int64_t width;
  KERNEL T operator()(int64_t, int64_t entry, const int* tokens, int64_t count) const {
    T sum = 0;
    for (int64_t at = 0; at < count; ++at) sum += dy[tokens[at] * width + entry];
    return sum;
  }
};

// Places are those of sorted tokens, of which the first of a row has its sum, or the rows of a table.
template <class T>
struct DistinctRows {
  SortedTokens sorted;
  int64_t width, places;
  bool by_id;
  RowsOfTokens<T> term;
  T* drows;
  int* rows;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t place = g.block(); place < places; place += g.blocks()) {
      const int64_t row = by_id ? place : sorted.keys[place];
      const Range range = sorted.of_row(row);
      const bool lost = by_id ? row == 0 && sorted.any_outside() : row >= sorted.rows;
      const bool some = lost || (by_id ? range.begin < range.end : range.begin == place);
      if (g.thread() == 0) rows[place] = !some ? -1 : lost ? 0 : static_cast<int>(row);
      for (int64_t entry = g.thread(); entry < width; entry += g.threads())
        drows[place * width + entry] = !some  ? T(0)
                                       : lost ? T(NAN)
                                              : term(row, entry, sorted.tokens + range.begin, range.end - range.begin);
    }
  }
};

// y of rows of a table, or with `put` the table's of y.
template <class T>
struct SomeRows {
  T *y, *table;
  const int* rows;
  int64_t width;
  bool put;
  KERNEL void operator()(int64_t i) const {
    const int64_t row = rows[i / width], place = row * width + i % width;
    if (!put)
      y[i] = row < 0 ? T(0) : table[place];
    else if (row >= 0)
      table[place] = y[i];
  }
};

// ---- first tokens ---------------------------------------------------------------------------------------------------

// y (S, D) from x (T, D); if `back`: dx from dy.
template <class T>
struct FirstTokens {
  int64_t sequences, tokens, width;
  const int *starts, *lengths;
  T* to;
  const T* from;
  bool back;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t s = g.block(); s < sequences; s += g.blocks()) {
      const int64_t start = starts[s];
      const bool inside = start >= 0 && start < tokens, some = lengths[s] != 0;
      for (int64_t c = g.thread(); c < width; c += g.threads()) {
        const int64_t first = s * width + c, flat = start * width + c;
        if (!back)
          to[first] = !some ? T(0) : inside ? from[flat] : T(NAN);
        else if (some && inside)
          to[flat] = from[first];
      }
    }
  }
};

struct EqualSequences {
  int length;
  int *starts, *lengths;
  KERNEL void operator()(int64_t s) const {
    starts[s] = static_cast<int>(s) * length;
    lengths[s] = length;
  }
};

// ---- TTM tables -----------------------------------------------------------------------------------------------------

// P (m1, n1, r), Q (m2, r, n2); row id = i * m2 + j.
template <class T>
struct TtmHalves {
  const T *p, *q;
  int64_t m1, m2, n1, n2, r;
  HD int64_t width() const { return n1 * n2; }
};

template <class T>
struct TtmLookup {
  TtmHalves<T> h;
  int64_t tokens;
  const int* ids;
  T* y;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t t = g.block(); t < tokens; t += g.blocks()) {
      const int64_t id = ids[t], i = id / h.m2, j = id % h.m2;
      const bool inside = id >= 0 && id < h.m1 * h.m2;
      for (int64_t entry = g.thread(); entry < h.width(); entry += g.threads()) {
        T sum = inside ? T(0) : T(NAN);
        if (inside) {
          const T *p = h.p + (i * h.n1 + entry / h.n2) * h.r, *q = h.q + j * h.r * h.n2 + entry % h.n2;
          for (int64_t k = 0; k < h.r; ++k) sum += p[k] * q[k * h.n2];
        }
        y[t * h.width() + entry] = sum;
      }
    }
  }
};

// dP[i] (n1, r) = sum over the tokens of row i of dy Q[j]^T.
template <class T>
struct TtmLeft {
  TtmHalves<T> h;
  const int* ids;
  const T* dy;
  KERNEL T operator()(int64_t, int64_t entry, const int* tokens, int64_t count) const {
    const int64_t a = entry / h.r, k = entry % h.r;
    T sum = 0;
    for (int64_t at = 0; at < count; ++at) {
      const int64_t t = tokens[at], j = ids[t] % h.m2;
      const T *d = dy + t * h.width() + a * h.n2, *q = h.q + (j * h.r + k) * h.n2;
      for (int64_t b = 0; b < h.n2; ++b) sum += d[b] * q[b];
    }
    return sum;
  }
};

// dQ[j] (r, n2) = sum over the tokens of column j of P[i]^T dy.
template <class T>
struct TtmRight {
  TtmHalves<T> h;
  const int* ids;
  const T* dy;
  KERNEL T operator()(int64_t, int64_t entry, const int* tokens, int64_t count) const {
    const int64_t k = entry / h.n2, b = entry % h.n2;
    T sum = 0;
    for (int64_t at = 0; at < count; ++at) {
      const int64_t t = tokens[at], i = ids[t] / h.m2;
      const T *d = dy + t * h.width() + b, *p = h.p + i * h.n1 * h.r + k;
      for (int64_t a = 0; a < h.n1; ++a) sum += p[a * h.r] * d[a * h.n2];
    }
    return sum;
  }
};

// ---- the ops --------------------------------------------------------------------------------------------------------

template <class M>
void GpuOps<M>::body(const op::GatherRows& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const GatherRows<T> body{args.y.size(0),       args.y.size(1),       args.table.size(0), args.y.data<T>(),
                             args.table.data<T>(), args.ids.data<int>(), args.accumulate};
    machine_.launch(over_items(args.y.size(0), args.y.size(1)), body);
  });
}

template <class M>
void GpuOps<M>::body(const op::ScatterRows& args) {
  begin(args, args.dtable.shape());
  by_float_type(args.dtable, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.dtable.size(0), width = args.dtable.size(1);
    if (args.dtable.count() == 0) return;
    const SortedTokens sorted = sort_tokens(machine_, args.ids, rows, 1, rows);
    row_sums(machine_, args.dtable.data<T>(), sorted, width, RowsOfTokens<T>{args.dy.data<T>(), width});
  });
}

template <class M>
void GpuOps<M>::body(const op::ScatterDistinctRows& args) {
  begin(args, args.drows.shape());
  by_float_type(args.drows, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.drows.size(1);
    if (args.rows.count() == 0) return;
    const SortedTokens sorted = sort_tokens(machine_, args.ids, args.table_rows, 1, args.table_rows);
    const int64_t places = args.rows.count();
    machine_.launch(over_items(places, width), DistinctRows<T>{sorted,
                                                               width,
                                                               places,
                                                               args.table_rows < sorted.count,
                                                               {args.dy.data<T>(), width},
                                                               args.drows.data<T>(),
                                                               args.rows.data<int>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::TakeRows& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), SomeRows<T>{args.y.data<T>(), args.table.data<T>(), args.rows.data<int>(), args.y.size(1), false});
  });
}

template <class M>
void GpuOps<M>::body(const op::PutRows& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), SomeRows<T>{args.y.data<T>(), args.table.data<T>(), args.rows.data<int>(), args.y.size(1), true});
  });
}

template <class M>
void GpuOps<M>::body(const op::FirstTokens& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const FirstTokens<T> rows{
        args.y.size(0),   args.x.size(0),   args.x.size(1), args.sequences.starts.data<int>(), args.sequences.lengths.data<int>(),
        args.y.data<T>(), args.x.data<T>(), false};
    machine_.launch(over_items(args.y.size(0), args.y.size(1)), rows);
  });
}

template <class M>
void GpuOps<M>::body(const op::FirstTokensBackward& args) {
  body(op::Fill{args.dx, 0});
  begin(args, args.dy.shape());
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    const FirstTokens<T> rows{args.dy.size(0),
                              args.dx.size(0),
                              args.dx.size(1),
                              args.sequences.starts.data<int>(),
                              args.sequences.lengths.data<int>(),
                              args.dx.data<T>(),
                              args.dy.data<T>(),
                              true};
    machine_.launch(over_items(args.dy.size(0), args.dy.size(1)), rows);
  });
}

template <class M>
void GpuOps<M>::body(const op::EqualSequences& args) {
  begin(args, args.starts.shape());
  each(args.starts.count(), EqualSequences{static_cast<int>(args.length), args.starts.data<int>(), args.lengths.data<int>()});
}

template <class T>
TtmHalves<T> halves_of(const Tensor& p, const Tensor& q) {
  return {p.data<T>(), q.data<T>(), p.size(0), q.size(0), p.size(1), q.size(2), p.size(2)};
}

template <class M>
void GpuOps<M>::body(const op::TtmLookup& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const TtmLookup<T> body{halves_of<T>(args.p, args.q), args.y.size(0), args.ids.data<int>(), args.y.data<T>()};
    machine_.launch(over_items(args.y.size(0), args.y.size(1)), body);
  });
}

template <class M>
void GpuOps<M>::body(const op::TtmLookupBackward& args) {
  begin(args, args.dy.shape());
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const TtmHalves<T> h = halves_of<T>(args.p, args.q);
    const int* id = args.ids.data<int>();
    row_sums(machine_, args.dp.data<T>(), sort_tokens(machine_, args.ids, h.m1 * h.m2, h.m2, h.m1), h.n1 * h.r,
             TtmLeft<T>{h, id, args.dy.data<T>()});
    row_sums(machine_, args.dq.data<T>(), sort_tokens(machine_, args.ids, h.m1 * h.m2, 1, h.m2), h.r * h.n2,
             TtmRight<T>{h, id, args.dy.data<T>()});
  });
}

}  // namespace comera::gpu
