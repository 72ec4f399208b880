// Lookups in plain tables and in the merged halves of a TTM table (METHODS.md 1.2), and their transposes. Every
// destination row is summed by one thread in the order of the tokens, so results do not depend on the thread count.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/small_product.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

// Index lists of one call. Each thread keeps its own and only grows it: a steady step allocates nothing.
struct IdLists {
  std::vector<uint64_t> by_id;      // (T) id << 32 | token, ascending
  std::vector<int32_t> tokens;      // (T) tokens in that order
  std::vector<int32_t> begin;       // (U + 1) first entry of each distinct id in `tokens`
  std::vector<int32_t> ids;         // (U) the distinct ids, ascending
  std::vector<uint64_t> by_column;  // (U) j << 32 | entry of `ids`, ascending
  std::vector<int32_t> first;       // (m + 1) first entry of each i (or j) in `ids` (or `by_column`)
  std::vector<int32_t> cut;         // pieces of [0, m) of about equal work
  int64_t distinct() const { return static_cast<int64_t>(ids.size()); }
};

IdLists& scratch() {
  thread_local IdLists lists;
  return lists;
}

void check_ids(const Tensor& ids, int64_t rows) {
  const int* id = ids.data<int>();
  const int64_t count = ids.count();
  bool outside = false;
  for (int64_t t = 0; t < count; ++t) outside |= id[t] < 0 || id[t] >= rows;
  if (!outside) return;
  for (int64_t t = 0; t < count; ++t)
    if (id[t] < 0 || id[t] >= rows)
      throw Error(ErrorCode::config, "token id " + std::to_string(id[t]) + " is outside the embedding table",
                  "position " + std::to_string(t) + " of the batch; the table has " + std::to_string(rows) + " rows",
                  "the data set needs a model with a larger vocabulary");
}

// Groups the tokens by id. `rows` bounds the ids.
IdLists& group_tokens(const Tensor& ids, int64_t rows) {
  check_ids(ids, rows);
  IdLists& lists = scratch();
  const int* id = ids.data<int>();
  const size_t count = static_cast<size_t>(ids.count());
  lists.by_id.resize(count);
  for (size_t t = 0; t < count; ++t) lists.by_id[t] = static_cast<uint64_t>(id[t]) << 32 | t;
  std::sort(lists.by_id.begin(), lists.by_id.end());
  lists.tokens.resize(count);
  lists.begin.clear();
  lists.ids.clear();
  lists.begin.reserve(count + 1);  // for the worst case at once, not for this batch's number of distinct ids
  lists.ids.reserve(count);
  lists.by_column.reserve(count);
  for (size_t at = 0; at < count; ++at) {
    const int32_t value = static_cast<int32_t>(lists.by_id[at] >> 32);
    lists.tokens[at] = static_cast<int32_t>(lists.by_id[at] & 0xffffffffu);
    if (at > 0 && value == lists.ids.back()) continue;
    lists.ids.push_back(value);
    lists.begin.push_back(static_cast<int32_t>(at));
  }
  lists.begin.push_back(static_cast<int32_t>(count));
  return lists;
}

// first[i] = entries before the first with key(entry) >= i, for ascending keys in [0, m); and pieces of [0, m) with
// about the same number of entries: frequent words lie side by side in a vocabulary.
template <class Key>
void split_groups(IdLists& lists, int64_t m, const Key& key) {
  constexpr int64_t kPieces = 64;
  const int64_t entries = lists.distinct();
  lists.first.assign(static_cast<size_t>(m + 1), 0);
  for (int64_t u = 0; u < entries; ++u) ++lists.first[static_cast<size_t>(key(u) + 1)];
  for (size_t i = 0; i < static_cast<size_t>(m); ++i) lists.first[i + 1] += lists.first[i];
  lists.cut.assign(kPieces + 1, 0);
  int64_t i = 0;
  for (int64_t piece = 1; piece <= kPieces; ++piece) {
    // A group without entries still has a destination to clear, so it counts as a little work.
    while (i < m && lists.first[static_cast<size_t>(i + 1)] * 8 + i + 1 <= (entries * 8 + m) * piece / kPieces) ++i;
    lists.cut[static_cast<size_t>(piece)] = static_cast<int32_t>(i);
  }
  lists.cut[kPieces] = static_cast<int32_t>(m);
}

// Calls body(i) for i in [0, m), the pieces of split_groups on the pool's threads.
template <class Body>
void for_groups(ThreadPool& pool, const IdLists& lists, const Body& body) {
  pool.parallel_for(static_cast<int64_t>(lists.cut.size()) - 1, 1, [&](int64_t begin, int64_t end) {
    for (int32_t i = lists.cut[static_cast<size_t>(begin)]; i < lists.cut[static_cast<size_t>(end)]; ++i) body(i);
  });
}

// A thread's own buffer, grown once: the summed gradient of one id, or one transposed matrix.
template <class T, int kUse>
T* thread_buffer(int64_t count) {
  thread_local std::vector<T> buffer;
  if (static_cast<int64_t>(buffer.size()) < count) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

// Sum of the rows of dy whose token has distinct id `u`; a single row is used where it lies.
template <class T>
const T* gradient_of_id(const IdLists& lists, int64_t u, const T* dy, int64_t width) {
  const size_t begin = static_cast<size_t>(lists.begin[static_cast<size_t>(u)]),
               end = static_cast<size_t>(lists.begin[static_cast<size_t>(u + 1)]);
  const T* first = dy + lists.tokens[begin] * width;
  if (end == begin + 1) return first;
  T* sum = thread_buffer<T, 0>(width);
  std::memcpy(sum, first, static_cast<size_t>(width) * sizeof(T));
  for (size_t at = begin + 1; at < end; ++at) {
    const T* row = dy + lists.tokens[at] * width;
    for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
  }
  return sum;
}

// out (columns, rows) = in (rows, columns) transposed.
template <class T>
void transpose(T* out, const T* in, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t row = 0; row < rows; ++row) out[c * rows + row] = in[row * columns + c];
}

int64_t grain_of_rows(int64_t width) { return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)); }

}  // namespace

// ---- plain tables -------------------------------------------------------------------------------------------------
void CpuOps::body(const op::GatherRows& args) {
  check_ids(args.ids, args.table.size(0));
  if (args.more) check_ids(args.more->ids, args.more->table.size(0));
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.y.size(1);
    const int *id = args.ids.data<int>(), *other_id = args.more ? args.more->ids.data<int>() : nullptr;
    T* out = args.y.data<T>();
    const T *rows = args.table.data<T>(), *others = args.more ? args.more->table.data<T>() : nullptr;
    const bool accumulate = args.accumulate;
    pool_.parallel_for(args.y.size(0), grain_of_rows(width), [=](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        T* to = out + t * width;
        const T* from = rows + id[t] * width;
        if (accumulate)
          for (int64_t c = 0; c < width; ++c) to[c] += from[c];
        else
          std::memcpy(to, from, static_cast<size_t>(width) * sizeof(T));
        if (!others) continue;
        const T* other = others + other_id[t] * width;
        for (int64_t c = 0; c < width; ++c) to[c] += other[c];
      }
    });
  });
}

void CpuOps::body(const op::ScatterRows& args) {
  const IdLists& lists = group_tokens(args.ids, args.dtable.size(0));
  by_float_type(args.dtable, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.dtable.size(1);
    T* out = args.dtable.data<T>();
    const T* in = args.dy.data<T>();
    pool_.parallel_for(args.dtable.count(), kElementGrain, [=](int64_t begin, int64_t end) { std::fill(out + begin, out + end, T(0)); });
    // Items are pieces of columns of one id: a table of two segments would otherwise use two threads at most.
    constexpr int64_t kColumns = 128;
    const int64_t pieces = ceil_div(width, kColumns);
    pool_.parallel_for(lists.distinct() * pieces, 16, [&, out, in](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const size_t u = static_cast<size_t>(item / pieces);
        const int64_t column = item % pieces * kColumns, columns = std::min(kColumns, width - column);
        T* to = out + lists.ids[u] * width + column;
        for (int32_t at = lists.begin[u]; at < lists.begin[u + 1]; ++at) {
          const T* from = in + lists.tokens[static_cast<size_t>(at)] * width + column;
          for (int64_t c = 0; c < columns; ++c) to[c] += from[c];
        }
      }
    });
  });
}

void CpuOps::body(const op::ScatterDistinctRows& args) {
  const IdLists& lists = group_tokens(args.ids, args.table_rows);
  by_float_type(args.drows, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.drows.size(1);
    T* out = args.drows.data<T>();
    int* row = args.rows.data<int>();
    const T* in = args.dy.data<T>();
    const bool by_id = args.table_rows < args.ids.count();
    std::fill(row, row + args.rows.count(), -1);
    pool_.parallel_for(args.drows.count(), kElementGrain, [=](int64_t begin, int64_t end) { std::fill(out + begin, out + end, T(0)); });
    pool_.parallel_for(lists.distinct(), grain_of_rows(width), [&, out, row, in](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int32_t id = lists.ids[static_cast<size_t>(u)], first = lists.begin[static_cast<size_t>(u)];
        const int64_t place = by_id ? id : first;
        row[place] = id;
        T* sum = out + place * width;
        for (int32_t at = first; at < lists.begin[static_cast<size_t>(u + 1)]; ++at) {
          const T* from = in + lists.tokens[static_cast<size_t>(at)] * width;
          for (int64_t c = 0; c < width; ++c) sum[c] += from[c];
        }
      }
    });
  });
}

void CpuOps::body(const op::TakeRows& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.y.size(1);
    T* to = args.y.data<T>();
    const T* table = args.table.data<T>();
    const int* row = args.rows.data<int>();
    pool_.parallel_for(args.y.size(0), grain_of_rows(width), [=](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        if (row[t] < 0)
          std::fill(to + t * width, to + (t + 1) * width, T(0));
        else
          std::copy_n(table + row[t] * width, width, to + t * width);
    });
  });
}

void CpuOps::body(const op::PutRows& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.y.size(1);
    T* table = args.table.data<T>();
    const T* from = args.y.data<T>();
    const int* row = args.rows.data<int>();
    pool_.parallel_for(args.y.size(0), grain_of_rows(width), [=](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        if (row[t] >= 0) std::copy_n(from + t * width, width, table + row[t] * width);
    });
  });
}

namespace {

// Both directions go through the sequences with a token; starts are checked before anything is written.
void check_starts(const Sequences& sequences, int64_t tokens) {
  const int *start = sequences.starts.data<int>(), *length = sequences.lengths.data<int>();
  for (int64_t s = 0; s < sequences.starts.count(); ++s)
    CHECK(length[s] == 0 || (start[s] >= 0 && start[s] < tokens),
          "sequence " << s << " starts at " << start[s] << " of " << tokens << " tokens");
}

}  // namespace

void CpuOps::body(const op::FirstTokens& args) {
  check_starts(args.sequences, args.x.size(0));
  const int *start = args.sequences.starts.data<int>(), *length = args.sequences.lengths.data<int>();
  const size_t row_bytes = static_cast<size_t>(args.x.size(1)) * size_of(args.x.dtype());
  char* out = static_cast<char*>(args.y.raw());
  const char* in = static_cast<const char*>(args.x.raw());
  for (int64_t s = 0; s < args.y.size(0); ++s) {
    char* to = out + static_cast<size_t>(s) * row_bytes;
    if (length[s] == 0)
      std::memset(to, 0, row_bytes);
    else
      std::memcpy(to, in + static_cast<size_t>(start[s]) * row_bytes, row_bytes);
  }
}

void CpuOps::body(const op::FirstTokensBackward& args) {
  check_starts(args.sequences, args.dx.size(0));
  const int *start = args.sequences.starts.data<int>(), *length = args.sequences.lengths.data<int>();
  const size_t row_bytes = static_cast<size_t>(args.dx.size(1)) * size_of(args.dx.dtype());
  char* out = static_cast<char*>(args.dx.raw());
  const char* in = static_cast<const char*>(args.dy.raw());
  pool_.parallel_for(args.dx.bytes(), 1 << 16,
                     [=](int64_t begin, int64_t end) { std::memset(out + begin, 0, static_cast<size_t>(end - begin)); });
  for (int64_t s = 0; s < args.dy.size(0); ++s)
    if (length[s] != 0) std::memcpy(out + static_cast<size_t>(start[s]) * row_bytes, in + static_cast<size_t>(s) * row_bytes, row_bytes);
}

void CpuOps::body(const op::EqualSequences& args) {
  int *start = args.starts.data<int>(), *length = args.lengths.data<int>();
  for (int64_t s = 0; s < args.starts.count(); ++s) {
    start[s] = static_cast<int>(s * args.length);
    length[s] = static_cast<int>(args.length);
  }
}

// ---- TTM tables ---------------------------------------------------------------------------------------------------
void CpuOps::body(const op::TtmLookup& args) {
  const IdLists& lists = group_tokens(args.ids, args.p.size(0) * args.q.size(0));
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const int64_t m2 = args.q.size(0), n1 = args.p.size(1), r = args.p.size(2), n2 = args.q.size(2), width = n1 * n2;
    T* out = args.y.data<T>();
    const T *left = args.p.data<T>(), *right = args.q.data<T>();
    // Each distinct id is computed in the row of its first token and copied to the others.
    pool_.parallel_for(lists.distinct(), 16, [&, out, left, right](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const size_t at = static_cast<size_t>(u);
        const int64_t i = lists.ids[at] / m2, j = lists.ids[at] % m2;
        const int32_t first = lists.begin[at], last = lists.begin[at + 1];
        T* row = out + lists.tokens[static_cast<size_t>(first)] * width;
        std::fill(row, row + width, T(0));
        SmallProduct<T>{n1, n2, r, left + i * n1 * r, r, 1, right + j * r * n2, n2, row, n2}.run();
        for (int32_t t = first + 1; t < last; ++t)
          std::memcpy(out + lists.tokens[static_cast<size_t>(t)] * width, row, static_cast<size_t>(width) * sizeof(T));
      }
    });
  });
}

void CpuOps::body(const op::TtmLookupBackward& args) {
  IdLists& lists = group_tokens(args.ids, args.p.size(0) * args.q.size(0));
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const int64_t m1 = args.p.size(0), m2 = args.q.size(0), n1 = args.p.size(1), r = args.p.size(2), n2 = args.q.size(2), width = n1 * n2;
    T *dleft = args.dp.data<T>(), *dright = args.dq.data<T>();
    const T *left = args.p.data<T>(), *right = args.q.data<T>(), *grad = args.dy.data<T>();

    // dP[i] = sum over the ids of row i of g (n1, n2) times Q[j]^T: ascending ids are already grouped by i. Summed
    // transposed, (r, n1), since then only g must be transposed, the smallest of the three.
    split_groups(lists, m1, [&](int64_t u) { return lists.ids[static_cast<size_t>(u)] / m2; });
    for_groups(pool_, lists, [&](int64_t i) {
      T *to = dleft + i * n1 * r, *sum = thread_buffer<T, 1>(n1 * (r + n2)), *transposed = sum + n1 * r;
      std::fill(sum, sum + n1 * r, T(0));
      for (int64_t u = lists.first[static_cast<size_t>(i)]; u < lists.first[static_cast<size_t>(i + 1)]; ++u) {
        transpose(transposed, gradient_of_id(lists, u, grad, width), n1, n2);
        SmallProduct<T>{r, n1, n2, right + lists.ids[static_cast<size_t>(u)] % m2 * r * n2, n2, 1, transposed, n1, sum, n1}.run();
      }
      transpose(to, sum, r, n1);
    });

    // dQ[j] = sum over the ids of column j of P[i]^T g.
    lists.by_column.resize(lists.ids.size());
    for (size_t u = 0; u < lists.ids.size(); ++u) lists.by_column[u] = static_cast<uint64_t>(lists.ids[u] % m2) << 32 | u;
    std::sort(lists.by_column.begin(), lists.by_column.end());
    split_groups(lists, m2, [&](int64_t u) { return static_cast<int64_t>(lists.by_column[static_cast<size_t>(u)] >> 32); });
    for_groups(pool_, lists, [&](int64_t j) {
      T* to = dright + j * r * n2;
      std::fill(to, to + r * n2, T(0));
      for (int64_t at = lists.first[static_cast<size_t>(j)]; at < lists.first[static_cast<size_t>(j + 1)]; ++at) {
        const int64_t u = static_cast<int64_t>(lists.by_column[static_cast<size_t>(at)] & 0xffffffffu);
        const T *g = gradient_of_id(lists, u, grad, width), *from = left + lists.ids[static_cast<size_t>(u)] / m2 * n1 * r;
        SmallProduct<T>{r, n2, n1, from, 1, r, g, n2, to, n2}.run();
      }
    });
  });
}

}  // namespace comera
