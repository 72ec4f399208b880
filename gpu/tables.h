// Lookups in dense tables and in the merged halves of a TTM table (METHODS.md 1.2), and their gradients. Tokens are sorted by
// row and cut into runs of a fixed length, so that a frequent word does not keep one block busy; a run's sums of rows are added
// in the order of the tokens, then those of the runs, so there are no atomics. An id outside the table gives NaN.
#pragma once
#include "gpu/lists.h"

namespace comera::gpu {

template <class T>
struct GatherRows {
  int64_t tokens, width, rows;
  T* y;
  const T* table;
  const int* ids;
  bool accumulate;
  struct More {
    int64_t rows;
    const T* table;  // null: there is none
    const int* ids;
  } more;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t t = g.block(); t < tokens; t += g.blocks()) {
      const int id = ids[t], other = more.table ? more.ids[t] : 0;
      const bool inside = id >= 0 && id < rows, other_inside = other >= 0 && other < more.rows;
      for (int64_t c = g.thread(); c < width; c += g.threads()) {
        T value = inside ? table[id * width + c] : T(NAN);
        if (accumulate) value = y[t * width + c] + value;
        if (more.table) value += other_inside ? more.table[other * width + c] : T(NAN);
        y[t * width + c] = value;
      }
    }
  }
};

// ---- tokens by row --------------------------------------------------------------------------------------------------

// The row of each token: id / divisor % rows of the table, or `rows` for an id outside [0, ids). And zeros in `clear`: rows without a
// token stay 0.
template <class T>
struct RowKeys {
  const int* ids;
  int64_t count;
  int ids_end, divisor, rows;
  int *keys, *tokens;
  T* clear;
  int64_t cells;
  KERNEL void operator()(int64_t i) const {
    if (i < cells) clear[i] = T(0);
    if (i >= count) return;
    const int id = ids[i];
    keys[i] = id >= 0 && id < ids_end ? id / divisor % rows : rows;
    tokens[i] = static_cast<int>(i);
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
  // Whether tokens of this key are added up: an id outside makes row 0 NaN.
  HD bool adds(int64_t key) const { return key < rows && (key > 0 || !any_outside()); }
};

template <class T, class Machine>
SortedTokens sort_tokens(Machine& machine, const Tensor& ids, int64_t ids_end, int64_t divisor, int64_t rows, T* clear, int64_t cells) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t count = ids.count();
  CHECK(ids_end < kMost && count < kMost, count << " tokens in a table of " << ids_end << " rows");
  int *keys_in = machine.template scratch<int>(count), *tokens_in = machine.template scratch<int>(count);
  int *keys = machine.template scratch<int>(count), *tokens = machine.template scratch<int>(count);
  const RowKeys<T> body{
      ids.data<int>(), count, static_cast<int>(ids_end), static_cast<int>(divisor), static_cast<int>(rows), keys_in, tokens_in,
      clear,           cells};
  machine.launch(over_elements(std::max(count, cells)), Elements<RowKeys<T>>{std::max(count, cells), body});
  int bits = 1;
  while (rows >> bits) ++bits;
  machine.sort(keys, tokens, keys_in, tokens_in, count, bits);
  return {keys, tokens, count, rows};
}

// Tokens of a run: enough runs to fill a device, few enough that their sums stay small beside the tokens' gradients.
inline int64_t run_length(int64_t tokens, int64_t runs) { return std::clamp<int64_t>(tokens / runs, 4, 32); }

// term(g, to, part, tokens, count): part `part` of to (width) = the sum over some sorted tokens of one row. The part of a row that began
// in an earlier run goes to partial (runs, width), at its run; all else to sum (rows, width).
template <class T, class Term>
struct SumsOfRuns {
  SortedTokens sorted;
  int64_t width, runs, length, parts;
  Term term;
  T *sum, *partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t item = g.block(); item < runs * parts; item += g.blocks()) {
      const int64_t run = item / parts, begin = run * length, rest = sorted.count - begin, end = begin + (rest < length ? rest : length);
      for (int64_t at = begin, next; at < end; at = next) {
        const int64_t key = sorted.keys[at];
        for (next = at + 1; next < end && sorted.keys[next] == key;) ++next;
        if (!sorted.adds(key)) continue;
        const bool began_before = at == begin && at > 0 && sorted.keys[at - 1] == key;
        term(g, began_before ? partial + run * width : sum + key * width, item % parts, sorted.tokens + at, next - at);
      }
    }
  }
};

// Adds what later runs have of a row to what its first one has. An item is kBlock columns of the row that goes on where a run begins; those
// of the first run see to ids outside.
template <class T>
struct FoldRuns {
  static constexpr int kAtOnce = 16;  // reads in flight
  SortedTokens sorted;
  int64_t width, runs, length;
  T* sum;
  const T* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t strips = ceil_div(width, kBlock);
    for (int64_t item = g.block(); item < runs * strips; item += g.blocks()) {
      const int64_t run = item / strips, begin = item % strips * kBlock, end = begin + kBlock < width ? begin + kBlock : width;
      const int64_t at = run * length, key = sorted.keys[at];
      if (run == 0) {
        for (int64_t column = begin + g.thread(); column < end && sorted.any_outside(); column += g.threads()) sum[column] = T(NAN);
        continue;
      }
      const bool began_before = sorted.keys[at - 1] == key, earlier = at > length && sorted.keys[at - length - 1] == key;
      if (!began_before || earlier || !sorted.adds(key)) continue;  // earlier: it is another item's
      for (int64_t column = begin + g.thread(); column < end; column += g.threads()) {
        T total = sum[key * width + column];
        for (int64_t first = run; first < runs && sorted.keys[first * length] == key; first += kAtOnce) {
          T more[kAtOnce];
          for (int l = 0; l < kAtOnce; ++l) {
            const int64_t r = first + l;
            more[l] = r < runs && sorted.keys[r * length] == key ? partial[r * width + column] : T(0);
          }
          for (int l = 0; l < kAtOnce; ++l) total += more[l];
        }
        sum[key * width + column] = total;
      }
    }
  }
};

// sum (rows, width), which sort_tokens has cleared, by `term`, whose blocks have this shape for one run.
template <class T, class Machine, class Term>
void row_sums(Machine& machine, T* sum, const SortedTokens& sorted, int64_t width, const Term& term, LaunchShape shape) {
  const int64_t length = run_length(sorted.count, Term::kRuns), runs = ceil_div(sorted.count, length), parts = shape.blocks;
  T* partial = machine.template scratch<T>(runs * width);
  shape.blocks = std::min(runs * parts, kMostBlocks);
  machine.launch(shape, SumsOfRuns<T, Term>{sorted, width, runs, length, parts, term, sum, partial});
  machine.launch(over_items(runs * ceil_div(width, kBlock), width), FoldRuns<T>{sorted, width, runs, length, sum, partial});
}

template <class T>
struct RowsOfTokens {
  static constexpr int64_t kRuns = 512;
  const T* dy;
  int64_t width;
  bool by_four;
  RowsOfTokens(const Tensor& dy, const T* to) : dy(dy.data<T>()), width(dy.size(1)), by_four(of_fours(width, dy.data<T>(), to)) {}
  template <class Group>
  KERNEL void operator()(const Group& g, T* to, int64_t, const int* tokens, int64_t count) const {
    each_four(g, width, [&](int64_t c) {
      Four<T> sum = {};
      for (int64_t at = 0; at < count; ++at) {
        const Four<T> x = read_four(dy + tokens[at] * width, c, width, by_four);
        for (int l = 0; l < 4; ++l) sum.v[l] += x.v[l];
      }
      write_four(to, c, width, by_four, sum);
    });
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
      if (some && !lost)
        term(g, drows + place * width, 0, sorted.tokens + range.begin, range.end - range.begin);
      else
        for (int64_t c = g.thread(); c < width; c += g.threads()) drows[place * width + c] = lost ? T(NAN) : T(0);
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

// y (S, D) from x (T, D).
template <class T>
struct FirstTokens {
  int64_t sequences, tokens, width;
  const int *starts, *lengths;
  T* y;
  const T* x;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t s = g.block(); s < sequences; s += g.blocks()) {
      const int64_t start = starts[s];
      const bool inside = start >= 0 && start < tokens, some = lengths[s] != 0;
      for (int64_t c = g.thread(); c < width; c += g.threads()) {
        y[s * width + c] = !some ? T(0) : inside ? x[start * width + c] : T(NAN);
      }
    }
  }
};
// dx (T, D) from dy (S, D): each row looks for the sequence that begins with it.
template <class T>
struct FirstTokensBackward {
  int64_t sequences, tokens, width;
  const int *starts, *lengths;
  T* dx;
  const T* dy;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t t = g.block(); t < tokens; t += g.blocks()) {
      int64_t of = -1;
      for (int64_t s = g.thread(); s < sequences; s += g.threads())
        if (lengths[s] != 0 && starts[s] == t) of = s;
      of = g.reduce(of, Largest{});
      for (int64_t c = g.thread(); c < width; c += g.threads()) dx[t * width + c] = of < 0 ? T(0) : dy[of * width + c];
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

// A thread has two rows by four columns of y[t], and reads four terms at once.
template <class T>
struct TtmLookup {
  TtmHalves<T> h;
  int64_t tokens;
  const int* ids;
  T* y;
  bool four_p, four_q, four_y;
  HD int64_t patches() const { return ceil_div(h.n1, 2) * ceil_div(h.n2, 4); }
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t across = ceil_div(h.n2, 4);
    for (int64_t t = g.block(); t < tokens; t += g.blocks()) {
      const int64_t id = ids[t], i = id / h.m2, j = id % h.m2;
      const bool inside = id >= 0 && id < h.m1 * h.m2;
      for (int64_t patch = g.thread(); patch < patches(); patch += g.threads()) {
        const int64_t a = patch / across * 2, b = patch % across * 4;
        const bool two = a + 1 < h.n1;
        Four<T> sum[2] = {};
        if (inside) {
          const T *p = h.p + (i * h.n1 + a) * h.r, *q = h.q + j * h.r * h.n2;
          for (int64_t k = 0; k < h.r; k += 4) {
            const Four<T> x[2] = {read_four(p, k, h.r, four_p), read_four(two ? p + h.r : p, k, h.r, four_p)};
            for (int term = 0; term < 4; ++term) {
              if (k + term >= h.r) break;
              const Four<T> line = read_four(q + (k + term) * h.n2, b, h.n2, four_q);
              for (int row = 0; row < 2; ++row)
                for (int l = 0; l < 4; ++l) sum[row].v[l] += x[row].v[term] * line.v[l];
            }
          }
        } else {
          for (int l = 0; l < 4; ++l) sum[0].v[l] = sum[1].v[l] = T(NAN);
        }
        write_four(y + t * h.width() + a * h.n2, b, h.n2, four_y, sum[0]);
        if (two) write_four(y + t * h.width() + (a + 1) * h.n2, b, h.n2, four_y, sum[1]);
      }
    }
  }
};

// Of a row i, dP[i] (n1, r) = sum over its tokens of dy Q[j]^T; or of a column j, dQ[j] (r, n2) = sum of P[i]^T dy. A part is a tile of
// it, which the block keeps in shared memory (lists.h).
template <class T>
struct TtmGradient {
  static constexpr int64_t kRuns = 1024;  // a token takes long
  using Products = SmallProducts<T>;
  TtmHalves<T> h;
  const int* ids;
  const T* dy;
  bool right, four_p, four_q, four_dy, four_c;

  HD ProductEntry<T> product(T* c) const {
    return right ? ProductEntry<T>{c, nullptr, nullptr, h.r, h.n2, h.n1, h.n2, h.r, h.n2, 0, 1, 0, true, false, four_p, four_dy, four_c}
                 : ProductEntry<T>{c, nullptr, nullptr, h.n1, h.r, h.n2, h.r, h.n2, h.n2, 0, 1, 0, false, true, four_dy, four_q, four_c};
  }
  LaunchShape shape() const {
    const ProductEntry<T> p = product(nullptr);
    return {Products::tiles(p.m, p.n), Products::kThreads, Products::kSharedBytes};
  }
  template <class Group>
  KERNEL void operator()(Group& g, T* to, int64_t part, const int* tokens, int64_t count) const {
    ProductEntry<T> p = product(to);
    const typename Products::Place place(p, part);
    int64_t next = tokens[0], next_id = ids[next];  // asked for while the one before is multiplied
    for (int64_t at = 0; at < count; ++at) {
      const int64_t t = next, id = next_id;
      if (at + 1 < count) {
        next = tokens[at + 1];
        next_id = ids[next];
      }
      const T* d = dy + t * h.width();
      p.a = right ? h.p + id / h.m2 * h.n1 * h.r : d;
      p.b = right ? d : h.q + id % h.m2 * h.r * h.n2;
      Products::multiply(g, p, place, at > 0);
    }
    Products::write(g, p, place);
  }
};

// ---- the ops --------------------------------------------------------------------------------------------------------

template <class M>
void GpuOps<M>::body(const op::GatherRows& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    GatherRows<T> body{args.y.size(0),       args.y.size(1),       args.table.size(0), args.y.data<T>(),
                       args.table.data<T>(), args.ids.data<int>(), args.accumulate,    {}};
    if (args.more) body.more = {args.more->table.size(0), args.more->table.data<T>(), args.more->ids.data<int>()};
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
    const SortedTokens sorted = sort_tokens(machine_, args.ids, rows, 1, rows, args.dtable.data<T>(), rows * width);
    row_sums(machine_, args.dtable.data<T>(), sorted, width, RowsOfTokens<T>(args.dy, args.dtable.data<T>()),
             over_items(1, ceil_div(width, 4)));
  });
}

template <class M>
void GpuOps<M>::body(const op::ScatterDistinctRows& args) {
  begin(args, args.drows.shape());
  by_float_type(args.drows, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.drows.size(1);
    if (args.rows.count() == 0) return;
    const SortedTokens sorted = sort_tokens<T>(machine_, args.ids, args.table_rows, 1, args.table_rows, nullptr, 0);
    const int64_t places = args.rows.count();
    machine_.launch(over_items(places, ceil_div(width, 4)), DistinctRows<T>{sorted,
                                                                            width,
                                                                            places,
                                                                            args.table_rows < sorted.count,
                                                                            {args.dy, args.drows.data<T>()},
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
        args.y.size(0),   args.x.size(0),  args.x.size(1), args.sequences.starts.data<int>(), args.sequences.lengths.data<int>(),
        args.y.data<T>(), args.x.data<T>()};
    machine_.launch(over_items(args.y.size(0), args.y.size(1)), rows);
  });
}

template <class M>
void GpuOps<M>::body(const op::FirstTokensBackward& args) {
  begin(args, args.dy.shape());
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    const FirstTokensBackward<T> rows{
        args.dy.size(0),   args.dx.size(0),  args.dx.size(1), args.sequences.starts.data<int>(), args.sequences.lengths.data<int>(),
        args.dx.data<T>(), args.dy.data<T>()};
    machine_.launch(over_items(args.dx.size(0), args.dx.size(1)), rows);
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
    const TtmHalves<T> h = halves_of<T>(args.p, args.q);
    const TtmLookup<T> body{h,
                            args.y.size(0),
                            args.ids.data<int>(),
                            args.y.data<T>(),
                            of_fours(h.r, h.p),
                            of_fours(h.n2, h.q),
                            of_fours(h.n2, args.y.data<T>())};
    machine_.launch(over_items(args.y.size(0), body.patches()), body);
  });
}

template <class M>
void GpuOps<M>::body(const op::TtmLookupBackward& args) {
  begin(args, args.dy.shape());
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const TtmHalves<T> h = halves_of<T>(args.p, args.q);
    const auto sums = [&](bool right, T* to, int64_t divisor, int64_t rows, int64_t columns) {
      const int64_t width = h.r * (right ? h.n2 : h.n1);
      const SortedTokens sorted = sort_tokens(machine_, args.ids, h.m1 * h.m2, divisor, rows, to, rows * width);
      const TtmGradient<T> term{h,
                                args.ids.data<int>(),
                                args.dy.data<T>(),
                                right,
                                of_fours(h.r, h.p),
                                of_fours(h.n2, h.q),
                                of_fours(h.n2, args.dy.data<T>()),
                                of_fours(columns, to)};
      row_sums(machine_, to, sorted, width, term, term.shape());
    };
    sums(false, args.dp.data<T>(), h.m2, h.m1, h.r);
    sums(true, args.dq.data<T>(), 1, h.m2, h.n2);
  });
}

}  // namespace comera::gpu
