// Attention by tiles in shared memory, each sequence by itself; a block takes some rows of one (sequence, head). The
// probabilities are never a whole matrix unless they are kept. Forward goes over the keys twice: for the softmax's
// maximum and sum, and for the output. Backward has a kernel for dQ, whose block owns rows of queries, and one for dK and
// dV, whose block owns rows of keys: no atomics. A sequence that lies outside the tokens counts as empty, and rows that
// no sequence covers are then NaN instead of 0.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

struct Pairs {
  const int *starts, *lengths;
  int64_t sequences, heads, longest, tokens, width, head_width;

  Pairs(const Tensor& q, const Sequences& s, int64_t heads)
      : starts(s.starts.data<int>()),
        lengths(s.lengths.data<int>()),
        sequences(s.starts.count()),
        heads(heads),
        longest(s.longest),
        tokens(q.size(0)),
        width(q.size(1)),
        head_width(width / heads) {}
  HD bool sound(int64_t s) const {
    return lengths[s] >= 0 && lengths[s] <= longest && (lengths[s] == 0 || (starts[s] >= 0 && int64_t{starts[s]} + lengths[s] <= tokens));
  }
};

// One of the (sequence, head) pairs.
struct Pair {
  int64_t head, start, length;
  int64_t at;  // of Q, K, V and their kin: first element of the head's columns
  int64_t lse_at;
  int64_t probs_at;  // first element of the pair in probs; also its first dropout word

  HD Pair(const Pairs& all, int64_t index)
      : head(index % all.heads),
        start(all.starts[index / all.heads]),
        length(all.sound(index / all.heads) ? all.lengths[index / all.heads] : 0),
        at(start * all.width + head * all.head_width),
        lse_at(head * all.tokens + start),
        probs_at(index * all.longest * all.longest) {}
};

// Rows that no sequence covers, in up to three matrices (T, D) and lse (heads, T); null ones are passed over.
template <class T>
struct ClearUncovered {
  Pairs pairs;
  T *a, *b, *c, *lse;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t t = g.block(); t < pairs.tokens; t += g.blocks()) {
      int found = 0;  // 1: covered, 2: some sequence is not sound
      for (int64_t s = g.thread(); s < pairs.sequences; s += g.threads()) {
        if (!pairs.sound(s))
          found |= 2;
        else if (t >= pairs.starts[s] && t < int64_t{pairs.starts[s]} + pairs.lengths[s])
          found |= 1;
      }
      const bool covered = g.reduce(found & 1, Largest{}) != 0, unsound = g.reduce(found & 2, Largest{}) != 0;
      if (covered) continue;
      const T value = unsound ? T(NAN) : T(0);
      for (int64_t d = g.thread(); d < pairs.width; d += g.threads()) {
        if (a) a[t * pairs.width + d] = value;
        if (b) b[t * pairs.width + d] = value;
        if (c) c[t * pairs.width + d] = value;
      }
      for (int64_t head = g.thread(); lse && head < pairs.heads; head += g.threads()) lse[head * pairs.tokens + t] = value;
    }
  }
};

// What the three kernels share. Tiles are of `side` rows; a tile of features (side, head_width) has rows of `ld`, one
// more than it needs, so that a column is not all in one memory bank; a tile of scores is (side, side).
template <class T>
struct AttentionTiles {
  Pairs pairs;
  int side;
  T scale;
  DropoutSite<T> site;

  HD int ld() const { return static_cast<int>(pairs.head_width) + 1; }
  HD int features() const { return side * ld(); }
  HD int scores() const { return side * side; }
  HD int64_t tiles() const { return pieces_of(pairs.longest, side); }
  HD int64_t items() const { return pairs.sequences * pairs.heads * tiles(); }

  // tile = rows [first, first + side) of the pair's columns; rows from its length on are 0.
  template <class Group>
  KERNEL void load(const Group& g, T* tile, const T* from, const Pair& pair, int64_t first) const {
    const int w = static_cast<int>(pairs.head_width);
    for (int e = g.thread(); e < side * w; e += g.threads()) {
      const int r = e / w, d = e % w;
      tile[r * ld() + d] = first + r < pair.length ? from[pair.at + (first + r) * pairs.width + d] : T(0);
    }
  }
  template <class Group>
  KERNEL void clear(const Group& g, T* tile) const {
    for (int e = g.thread(); e < features(); e += g.threads()) tile[e] = 0;
  }
  // The rows of a tile that belong to the pair, back to where load() takes them.
  template <class Group>
  KERNEL void store(const Group& g, T* to, const T* tile, const Pair& pair, int64_t first) const {
    const int w = static_cast<int>(pairs.head_width);
    for (int e = g.thread(); e < side * w; e += g.threads()) {
      const int r = e / w, d = e % w;
      if (first + r < pair.length) to[pair.at + (first + r) * pairs.width + d] = tile[r * ld() + d];
    }
  }
  KERNEL T dot(const T* a, int row_a, const T* b, int row_b) const {
    const T *x = a + row_a * ld(), *y = b + row_b * ld();
    T sum = 0;
    for (int d = 0; d < pairs.head_width; ++d) sum += x[d] * y[d];
    return sum;
  }
  // out (side, w) += weights b, or weights^T b where `turned`. An element of out is always the same thread's.
  template <class Group>
  KERNEL void accumulate(const Group& g, T* out, const T* weights, bool turned, const T* b) const {
    const int w = static_cast<int>(pairs.head_width), along = turned ? side : 1, across = turned ? 1 : side;
    for (int e = g.thread(); e < side * w; e += g.threads()) {
      const int r = e / w, d = e % w;
      T sum = 0;
      for (int j = 0; j < side; ++j) sum += weights[r * across + j * along] * b[j * ld() + d];
      out[r * ld() + d] += sum;
    }
  }
  KERNEL T dropped(const Pair& pair, T p, int64_t i, int64_t j) const {
    return site.apply(site.stream(), p, pair.probs_at + i * pairs.longest + j);
  }
};

template <class T>
struct AttentionForward {
  AttentionTiles<T> t;
  const T *q, *k, *v;
  T *out, *lse, *probs;  // probs may be null

  static int64_t shared_count(int64_t side, int64_t ld) { return side * (4 * ld + side + 2); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *tk = tq + t.features(), *tv = tk + t.features(), *sum = tv + t.features(), *s = sum + t.features();
    T *most = s + t.scores(), *total = most + side;  // of each row: largest score, sum of exponentials
    for (int64_t item = g.block(); item < t.items(); item += g.blocks()) {
      const Pair pair(t.pairs, item / t.tiles());
      const int64_t n = pair.length, first = item % t.tiles() * side, longest = t.pairs.longest;
      if (probs)  // nothing undefined is kept
        for (int64_t e = g.thread(); e < side * longest; e += g.threads()) {
          const int64_t i = first + e / longest, j = e % longest;
          if (i < longest && (i >= n || j >= n)) probs[pair.probs_at + i * longest + j] = 0;
        }
      if (first >= n) continue;
      t.load(g, tq, q, pair, first);
      t.clear(g, sum);
      for (int r = g.thread(); r < side; r += g.threads()) {
        most[r] = -static_cast<T>(INFINITY);
        total[r] = 0;
      }
      for (int64_t key = 0; key < n; key += side) {
        t.load(g, tk, k, pair, key);
        g.sync();
        for (int e = g.thread(); e < t.scores(); e += g.threads()) s[e] = t.scale * t.dot(tq, e / side, tk, e % side);
        g.sync();
        for (int r = g.thread(); r < side; r += g.threads()) {
          const T* row = s + r * side;
          T largest = most[r];
          for (int j = 0; j < side && key + j < n; ++j) largest = Largest{}(largest, row[j]);
          T part = total[r] * fast::exp(most[r] - largest);
          for (int j = 0; j < side && key + j < n; ++j) part += fast::exp(row[j] - largest);
          most[r] = largest;
          total[r] = part;
        }
      }
      g.sync();
      for (int r = g.thread(); r < side; r += g.threads())
        if (first + r < n) lse[pair.lse_at + first + r] = most[r] + std::log(total[r]);
      for (int64_t key = 0; key < n; key += side) {
        t.load(g, tk, k, pair, key);
        t.load(g, tv, v, pair, key);
        g.sync();
        for (int e = g.thread(); e < t.scores(); e += g.threads()) {
          const int64_t i = first + e / side, j = key + e % side;
          T p = 0;
          if (i < n && j < n) {
            p = fast::exp(t.scale * t.dot(tq, e / side, tk, e % side) - most[e / side]) / total[e / side];
            if (probs) probs[pair.probs_at + i * longest + j] = p;
            p = t.dropped(pair, p, i, j);
          }
          s[e] = p;
        }
        g.sync();
        t.accumulate(g, sum, s, false, tv);
        g.sync();
      }
      t.store(g, out, sum, pair, first);
      g.sync();
    }
  }
};

// What both backward kernels read.
template <class T>
struct AttentionSaved {
  const T *q, *k, *v, *dout, *lse, *probs;  // probs may be null: then computed again

  // Of score (i, j), from row `a` of tiles q and dout and row `b` of tiles k and v: the probability, and the gradient of
  // the dropped one.
  struct Entry {
    T p, dropped, dp;
  };
  KERNEL Entry entry(const AttentionTiles<T>& t, const Pair& pair, int64_t i, int64_t j, const T* tq, const T* td, int a, const T* tk,
                     const T* tv, int b, T lse_of_row) const {
    if (i >= pair.length || j >= pair.length) return {};
    const T p = probs ? probs[pair.probs_at + i * t.pairs.longest + j] : fast::exp(t.scale * t.dot(tq, a, tk, b) - lse_of_row);
    return {p, t.dropped(pair, p, i, j), t.dot(td, a, tv, b)};
  }
};

// delta (heads, T) = sum over the keys of dropped probability times its gradient; and dQ.
template <class T>
struct AttentionBackwardQ {
  AttentionTiles<T> t;
  AttentionSaved<T> saved;
  T *delta, *dq;

  static int64_t shared_count(int64_t side, int64_t ld) { return side * (5 * ld + side + 2); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *td = tq + t.features(), *tk = td + t.features(), *tv = tk + t.features(), *sum = tv + t.features();
    T *s = sum + t.features(), *logs = s + t.scores(), *deltas = logs + side;
    for (int64_t item = g.block(); item < t.items(); item += g.blocks()) {
      const Pair pair(t.pairs, item / t.tiles());
      const int64_t n = pair.length, first = item % t.tiles() * side;
      if (first >= n) continue;
      t.load(g, tq, saved.q, pair, first);
      t.load(g, td, saved.dout, pair, first);
      t.clear(g, sum);
      for (int r = g.thread(); r < side; r += g.threads()) {
        logs[r] = first + r < n ? saved.lse[pair.lse_at + first + r] : T(0);
        deltas[r] = 0;
      }
      for (const bool last : {false, true}) {  // first delta, then dQ
        for (int64_t key = 0; key < n; key += side) {
          t.load(g, tk, saved.k, pair, key);
          t.load(g, tv, saved.v, pair, key);
          g.sync();
          for (int e = g.thread(); e < t.scores(); e += g.threads()) {
            const int a = e / side, b = e % side;
            const auto entry = saved.entry(t, pair, first + a, key + b, tq, td, a, tk, tv, b, logs[a]);
            s[e] = last ? t.scale * (entry.dropped * entry.dp - entry.p * deltas[a]) : entry.dropped * entry.dp;
          }
          g.sync();
          if (last)
            t.accumulate(g, sum, s, false, tk);
          else
            for (int r = g.thread(); r < side; r += g.threads())
              for (int j = 0; j < side; ++j) deltas[r] += s[r * side + j];
          g.sync();
        }
      }
      t.store(g, dq, sum, pair, first);
      for (int r = g.thread(); r < side; r += g.threads())
        if (first + r < n) delta[pair.lse_at + first + r] = deltas[r];
      g.sync();
    }
  }
};

template <class T>
struct AttentionBackwardKV {
  AttentionTiles<T> t;
  AttentionSaved<T> saved;
  const T* delta;
  T *dk, *dv;

  static int64_t shared_count(int64_t side, int64_t ld) { return side * (6 * ld + 2 * side + 2); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *td = tq + t.features(), *tk = td + t.features(), *tv = tk + t.features();
    T *sum_k = tv + t.features(), *sum_v = sum_k + t.features(), *s = sum_v + t.features(), *p = s + t.scores();
    T *logs = p + t.scores(), *deltas = logs + side;
    for (int64_t item = g.block(); item < t.items(); item += g.blocks()) {
      const Pair pair(t.pairs, item / t.tiles());
      const int64_t n = pair.length, first = item % t.tiles() * side;
      if (first >= n) continue;
      t.load(g, tk, saved.k, pair, first);
      t.load(g, tv, saved.v, pair, first);
      t.clear(g, sum_k);
      t.clear(g, sum_v);
      for (int64_t query = 0; query < n; query += side) {
        t.load(g, tq, saved.q, pair, query);
        t.load(g, td, saved.dout, pair, query);
        for (int r = g.thread(); r < side; r += g.threads()) {
          logs[r] = query + r < n ? saved.lse[pair.lse_at + query + r] : T(0);
          deltas[r] = query + r < n ? delta[pair.lse_at + query + r] : T(0);
        }
        g.sync();
        for (int e = g.thread(); e < t.scores(); e += g.threads()) {
          const int a = e / side, b = e % side;
          const auto entry = saved.entry(t, pair, query + a, first + b, tq, td, a, tk, tv, b, logs[a]);
          p[e] = entry.dropped;
          s[e] = t.scale * (entry.dropped * entry.dp - entry.p * deltas[a]);
        }
        g.sync();
        t.accumulate(g, sum_v, p, true, td);
        t.accumulate(g, sum_k, s, true, tq);
        g.sync();
      }
      t.store(g, dk, sum_k, pair, first);
      t.store(g, dv, sum_v, pair, first);
      g.sync();
    }
  }
};

// The largest tile whose shared memory every device has.
template <class T, class Body>
int tile_side(int64_t head_width) {
  for (int side : {32, 24, 16, 8, 4, 2, 1})
    if (Body::shared_count(side, head_width + 1) * static_cast<int64_t>(sizeof(T)) <= kSharedBytes) return side;
  throw Error(ErrorCode::config, "attention heads of " + std::to_string(head_width) + " features are too wide for the CUDA ops",
              "a tile of them does not fit a block's shared memory", "use more heads, or --device cpu");
}

template <class T, class Machine, class Body>
void launch_tiles(Machine& machine, const Pairs& pairs, const DropoutSite<T>& site, Body body) {
  const int side = tile_side<T, Body>(pairs.head_width);
  body.t = {pairs, side, static_cast<T>(1.0 / std::sqrt(static_cast<double>(pairs.head_width))), site};
  const int64_t items = body.t.items(), shared = Body::shared_count(side, pairs.head_width + 1) * static_cast<int64_t>(sizeof(T));
  machine.launch(over_items(items, std::max<int64_t>(side * side, side * pairs.head_width), shared), body);
}

template <class M>
void GpuOps<M>::do_attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k,
                                     const Tensor& v, const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) {
  begin("attention_forward", q.shape());
  const Pairs pairs(q, sequences, heads);
  by_float_type(q, [&](auto type) {
    using T = decltype(type);
    const DropoutSite<T> site(dropout, step);
    machine_.launch(over_items(pairs.tokens, kBlock), ClearUncovered<T>{pairs, out.data<T>(), nullptr, nullptr, lse.data<T>()});
    launch_tiles<T>(machine_, pairs, site,
                    AttentionForward<T>{{pairs, 0, T(0), site},
                                        q.data<T>(),
                                        k.data<T>(),
                                        v.data<T>(),
                                        out.data<T>(),
                                        lse.data<T>(),
                                        probs ? probs.data<T>() : nullptr});
  });
}

template <class M>
void GpuOps<M>::do_attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse,
                                      const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences,
                                      int64_t heads, Dropout dropout, const Tensor& step) {
  begin("attention_backward", q.shape());
  const Pairs pairs(q, sequences, heads);
  by_float_type(q, [&](auto type) {
    using T = decltype(type);
    const DropoutSite<T> site(dropout, step);
    const AttentionTiles<T> tiles{pairs, 0, T(0), site};
    const AttentionSaved<T> saved{q.data<T>(), k.data<T>(), v.data<T>(), dout.data<T>(), lse.data<T>(), probs ? probs.data<T>() : nullptr};
    T* delta = machine_.template scratch<T>(lse.count());
    machine_.launch(over_items(pairs.tokens, kBlock), ClearUncovered<T>{pairs, dq.data<T>(), dk.data<T>(), dv.data<T>(), nullptr});
    launch_tiles<T>(machine_, pairs, site, AttentionBackwardQ<T>{tiles, saved, delta, dq.data<T>()});
    launch_tiles<T>(machine_, pairs, site, AttentionBackwardKV<T>{tiles, saved, delta, dk.data<T>(), dv.data<T>()});
  });
}

}  // namespace comera::gpu
