// Attention and rotary positions. Attention goes one (sequence, head) at a time: its probabilities (64 KiB for 128 tokens) stay in L2 from
// the scores to the last product. Threads take the pairs in turn; every pair is computed by one thread in one order. In backward all heads
// that share keys or values are one thread's, one after another.
#include <cmath>
#include <cstring>

#include "core/base/rounding.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/head_products.h"
#include "core/cpu/lanes.h"
#include "core/cpu/typed.h"
#include "core/ops/attention_math.h"
#include "core/ops/rotary_math.h"

namespace comera {
namespace {

// What all pairs share.
struct Layout {
  const int *starts, *lengths;
  int64_t sequences, heads, longest, tokens;
  int64_t head_width, width, key_step;         // of Q and K: columns of a head; row steps
  int64_t value_width, mean_step, value_step;  // of V and the means: columns of a head; row steps
  int64_t key_group, value_group;              // query heads on a head of keys, on one of values
  bool causal;
  int64_t ld;  // row step of a thread's matrices: whole cache lines

  Layout(const Tensor& q, const Mat& k, const Mat& v, const Sequences& s, const AttentionHeads& h)
      : starts(s.starts.data<int>()),
        lengths(s.lengths.data<int>()),
        sequences(s.starts.count()),
        heads(h.heads),
        longest(s.longest),
        tokens(q.size(0)),
        head_width(q.size(1) / heads),
        width(q.size(1)),
        key_step(k.ld),
        value_width(v.cols / h.value_heads),
        mean_step(value_width * heads),
        value_step(v.ld),
        key_group(heads / h.key_heads),
        value_group(heads / h.value_heads),
        causal(h.causal),
        ld(round_up(longest, 16)) {
    for (int64_t i = 0; i < sequences; ++i)
      CHECK(lengths[i] >= 0 && lengths[i] <= longest && (lengths[i] == 0 || (starts[i] >= 0 && starts[i] + lengths[i] <= tokens)),
            "sequence " << i << " is tokens " << starts[i] << "+" << lengths[i] << " of " << tokens << ", longest " << longest);
  }
};

struct Pair {
  int64_t sequence, head, start, length;
  int64_t at, key_at, mean_at, value_at;  // of Q, K, the means, V and theirs: first element of the head's columns
  int64_t lse_at;
  int64_t probs_at;    // first element of the pair in probs
  uint64_t draw;       // random draw of dropout for probability (0, 0)
  uint64_t row_draws;  // draws from row to row

  Pair(const Layout& l, int64_t index)
      : sequence(index / l.heads),
        head(index % l.heads),
        start(l.starts[sequence]),
        length(l.lengths[sequence]),
        at(start * l.width + head * l.head_width),
        key_at(start * l.key_step + head / l.key_group * l.head_width),
        mean_at(start * l.mean_step + head * l.value_width),
        value_at(start * l.value_step + head / l.value_group * l.value_width),
        lse_at(head * l.tokens + start),
        probs_at(index * l.longest * l.longest),
        draw(static_cast<uint64_t>(probs_at)),
        row_draws(static_cast<uint64_t>(l.longest)) {}
};

// Products of the columns of keys and of values, and a thread's memory of both.
template <class T>
struct PairProducts {
  struct Memory {
    HeadMemory<T> keys, values;
  };
  HeadProducts<T> keys, values;

  PairProducts(const Layout& l, bool padded)
      : keys(l.head_width, l.longest, padded, l.causal), values(l.value_width, l.longest, padded, l.causal) {}
  int64_t room() const { return keys.room() + values.room(); }
  Memory memory(T* at) const { return {keys.memory(at), values.memory(at + keys.room())}; }
};

// body(pair, matrices, memory) for every (sequence, head), with `count` matrices (longest, ld) and the memory of products of the thread. A
// thread takes `together` neighbours at a time.
template <class T, class Body>
void for_pairs(ThreadPool& pool, const Layout& l, const PairProducts<T>& products, int64_t together, int64_t count, const Body& body) {
  const int64_t groups = l.sequences * l.heads / together, matrices = count * l.longest * l.ld, room = matrices + products.room();
  if (groups == 0) return;
  T* buffers = pool.scratch_of<T>(std::max<int64_t>(pool.workers_for(groups, 1) * room, 1));
  pool.parallel_for_workers(groups, 1, [&](int64_t worker, int64_t begin, int64_t end) {
    T* own = buffers + worker * room;
    auto memory = products.memory(own + matrices);
    for (int64_t index = begin; index < end; ++index)
      for (int64_t member = 0; member < together; ++member) body(Pair(l, index * together + member), own, memory);
  });
}

// Columns of a matrix of T rows.
template <class T>
struct Columns {
  T* data;
  int64_t width, step;
};

// Rows that no sequence covers become 0; in lse (heads, tokens), if there is one, too.
template <class T>
void clear_uncovered(ThreadPool& pool, const Layout& l, std::initializer_list<Columns<T>> matrices, T* lse) {
  char* covered = pool.scratch_of<char>(l.tokens + 1);
  std::memset(covered, 0, static_cast<size_t>(l.tokens));
  int64_t left = l.tokens;
  for (int64_t s = 0; s < l.sequences; ++s) {
    if (l.lengths[s] > 0) std::memset(covered + l.starts[s], 1, static_cast<size_t>(l.lengths[s]));
    left -= l.lengths[s];
  }
  if (left <= 0) return;  // sequences do not overlap
  for (int64_t t = 0; t < l.tokens; ++t) {
    if (covered[t]) continue;
    for (const Columns<T>& matrix : matrices) std::fill_n(matrix.data + t * matrix.step, matrix.width, T(0));
    if (lse)
      for (int64_t head = 0; head < l.heads; ++head) lse[head * l.tokens + t] = 0;
  }
}

// row = exp(row - shift)
template <class T>
void exponentials(T* row, int64_t n, T shift) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) row[j] = fast::exp(row[j] - shift);
}

template <class T>
void probabilities_again(T* row, int64_t n, T log_sum) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) row[j] = probability_again(row[j], log_sum);
}

// Softmax in place; returns the logarithm of the sum of exponentials.
template <class T>
T softmax(T* row, int64_t n) {
  const T largest = row_max(n, row);
  exponentials(row, n, largest);
  const T sum = row_sum<T>(n, [&](auto v, int64_t j) { return at<decltype(v)>(row + j); }), factor = T(1) / sum;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) row[j] *= factor;
  return largest + std::log(sum);
}

// From p, and dp = gradient of the dropped probabilities: pd = p mask, and in place of dp the gradient of the scores
// scale (pd dp - p delta), delta = sum of pd dp. pd may be p.
template <class T>
void softmax_backward(int64_t n, T* pd, const T* p, T* dp, T scale) {
  const T delta = row_sum<T>(n, [&](auto v, int64_t j) { return at<decltype(v)>(pd + j) * at<decltype(v)>(dp + j); });
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) dp[j] = scale * (pd[j] * dp[j] - p[j] * delta);
}

}  // namespace

void CpuOps::body(const op::AttentionForward& args) {
  const Layout l(args.q, args.k, args.v, args.sequences, args.heads);
  const DropoutSite site(args.dropout, args.step, l.sequences * l.heads * l.longest * l.longest);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const T *pq = args.q.data<T>(), *pk = args.k.data<T>(), *pv = args.v.data<T>();
    T *to = args.out.data<T>(), *logs = args.lse.data<T>(), *kept = args.probs ? args.probs.data<T>() : nullptr;
    const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(l.head_width)));
    clear_uncovered<T>(pool_, l, {{to, l.mean_step, l.mean_step}}, logs);
    const PairProducts<T> products(l, !kept || l.longest % 16 == 0);
    for_pairs<T>(pool_, l, products, 1, 1, [&](const Pair& pair, T* buffer, auto& memory) {
      const int64_t n = pair.length;
      T* p = kept ? kept + pair.probs_at : buffer;  // (n, n), row step ldp
      const int64_t ldp = kept ? l.longest : l.ld;
      if (kept && n < l.longest) std::fill(p, p + l.longest * l.longest, T(0));  // nothing undefined is kept
      if (n == 0) return;
      products.keys.across(p, ldp, n, scale, pq + pair.at, l.width, pk + pair.key_at, l.key_step, memory.keys);
      const T* used = p;
      int64_t ld_used = ldp;
      if (kept && site.on()) used = buffer, ld_used = l.ld;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t seen = l.causal ? i + 1 : n;
        logs[pair.lse_at + i] = softmax(p + i * ldp, seen);
        std::fill(p + i * ldp + seen, p + i * ldp + n, T(0));
        if (site.on())
          site.apply(kept ? buffer + i * l.ld : p + i * ldp, p + i * ldp, pair.draw + static_cast<uint64_t>(i) * pair.row_draws, n);
      }
      products.values.along(to + pair.mean_at, l.mean_step, n, used, ld_used, false, pv + pair.value_at, l.value_step, false,
                            memory.values);
    });
  });
}

void CpuOps::body(const op::AttentionBackward& args) {
  const Layout l(args.q, args.k, args.v, args.sequences, args.heads);
  const DropoutSite site(args.dropout, args.step, l.sequences * l.heads * l.longest * l.longest);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const T *pq = args.q.data<T>(), *pk = args.k.data<T>(), *pv = args.v.data<T>(), *from = args.dout.data<T>(), *logs = args.lse.data<T>();
    const T* kept = args.probs ? args.probs.data<T>() : nullptr;
    T *to_q = args.dq.data<T>(), *to_k = args.dk.data<T>(), *to_v = args.dv.data<T>();
    const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(l.head_width)));
    clear_uncovered<T>(pool_, l, {{to_q, l.width, l.width}, {to_k, args.k.cols, l.key_step}, {to_v, args.v.cols, l.value_step}}, nullptr);
    const PairProducts<T> products(l, true);
    for_pairs<T>(pool_, l, products, l.value_group, 3, [&](const Pair& pair, T* buffer, auto& memory) {
      const int64_t n = pair.length, ld = l.ld;
      if (n == 0) return;
      T *own = buffer, *dropped = own + l.longest * ld, *dp = dropped + l.longest * ld;
      const T* p = kept ? kept + pair.probs_at : own;
      const int64_t ldp = kept ? l.longest : ld;
      if (!kept) products.keys.across(own, ld, n, scale, pq + pair.at, l.width, pk + pair.key_at, l.key_step, memory.keys);
      products.values.across(dp, ld, n, T(1), from + pair.mean_at, l.mean_step, pv + pair.value_at, l.value_step, memory.values);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t seen = l.causal ? i + 1 : n;
        if (!kept) probabilities_again(own + i * ld, seen, logs[pair.lse_at + i]);
        const T* row = p + i * ldp;
        T *pd = dropped + i * ld, *slope = dp + i * ld;
        if (site.on())
          site.apply(pd, row, pair.draw + static_cast<uint64_t>(i) * pair.row_draws, seen);
        else
          std::copy(row, row + seen, pd);
        softmax_backward(seen, pd, row, slope, scale);
        std::fill(pd + seen, pd + n, T(0));
        std::fill(slope + seen, slope + n, T(0));
      }
      // Sums over the heads of a group.
      const bool add_keys = pair.head % l.key_group > 0, add_values = pair.head % l.value_group > 0;
      products.values.along(to_v + pair.value_at, l.value_step, n, dropped, ld, true, from + pair.mean_at, l.mean_step, add_values,
                            memory.values);
      products.keys.along(to_q + pair.at, l.width, n, dp, ld, false, pk + pair.key_at, l.key_step, false, memory.keys);
      products.keys.along(to_k + pair.key_at, l.key_step, n, dp, ld, true, pq + pair.at, l.width, add_keys, memory.keys);
    });
  });
}

void CpuOps::body(const op::RotaryTable& args) {
  const int64_t tokens = args.table.size(0), width = args.table.size(1), half = width / 2;
  const int* positions = args.positions.data<int>();
  const RotaryAngles angles(args.theta, width);
  by_float_type(args.table, [&](auto type) {
    using T = decltype(type);
    T* to = args.table.data<T>();
    pool_.parallel_for(tokens, 16, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        for (int64_t i = 0; i < half; ++i) {
          const Turn turn = angles(positions[t], i);
          to[t * width + i] = static_cast<T>(turn.cos);
          to[t * width + half + i] = static_cast<T>(turn.sin);
        }
    });
  });
}

void CpuOps::body(const op::Rotate& args) {
  const int64_t tokens = args.y.size(0), features = args.y.size(1), width = args.table.size(1), half = width / 2;
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T *from = args.x.data<T>(), *table = args.table.data<T>();
    pool_.parallel_for(tokens, kElementGrain / std::max<int64_t>(features, 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const T *cos = table + t * width, *sin = cos + half;
        for (int64_t first = t * features; first < (t + 1) * features; first += width) {
          const T *a = from + first, *b = a + half;
          T *y = to + first, *z = y + half;
#pragma GCC ivdep
          for (int64_t i = 0; i < half; ++i) {
            const Rotated<T> turned(a[i], b[i], cos[i], sin[i], args.back);
            y[i] = turned.a;
            z[i] = turned.b;
          }
        }
      }
    });
  });
}

}  // namespace comera
