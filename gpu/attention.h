// Attention by tiles in shared memory, inside each sequence (METHODS.md 15.1). A block computes some rows of one (sequence, head). The
// probabilities form a whole matrix only where backward keeps them. A block holds the scores of its rows for all keys; if they do not fit,
// it passes over the keys twice: for the softmax's maximum and sum, then for the output. Backward has one kernel for dQ, whose blocks own
// rows of queries, and one for dK and dV, whose blocks own rows of keys, so it needs no atomics. A sequence outside the tokens counts as
// empty, and rows that no sequence covers are then NaN instead of 0.
//
// f32 products are fp32, or TF32 on tensor cores under tf32, bf16 and fp8. Fused kernels of libraries are not an option: they require
// 16-bit operands and draw their own dropout mask, while this mask equals the CPU's.
#pragma once
#include "core/ops/attention_math.h"
#include "core/ops/rotary_math.h"
#include "core/ops/small_floats.h"
#include "gpu/gpu_ops.h"
#include "gpu/tile_product.h"

namespace comera::gpu {

struct Pairs {
  const int *starts, *lengths;
  int64_t sequences, heads, key_heads, longest, tokens, width, head_width, key_width;
  bool causal;

  Pairs(const Tensor& q, const Sequences& s, const AttentionHeads& h)
      : starts(s.starts.data<int>()),
        lengths(s.lengths.data<int>()),
        sequences(s.starts.count()),
        heads(h.heads),
        key_heads(h.key_heads),
        longest(s.longest),
        tokens(q.size(0)),
        width(q.size(1)),
        head_width(width / heads),
        key_width(head_width * key_heads),
        causal(h.causal) {}
  HD int64_t group() const { return heads / key_heads; }  // query heads on a key head
  HD bool sound(int64_t s) const {
    return lengths[s] >= 0 && lengths[s] <= longest && (lengths[s] == 0 || (starts[s] >= 0 && int64_t{starts[s]} + lengths[s] <= tokens));
  }
};

// One of the (sequence, head) pairs.
struct Pair {
  int64_t head, start, length;
  int64_t at, key_at;  // first element of the head's columns in Q, O and their gradients; in K, V and theirs
  int64_t lse_at;
  int64_t probs_at;  // first element of the pair in probs; also its first dropout word

  HD Pair(const Pairs& all, int64_t index)
      : head(index % all.heads),
        start(all.starts[index / all.heads]),
        length(all.sound(index / all.heads) ? all.lengths[index / all.heads] : 0),
        at(start * all.width + head * all.head_width),
        key_at(start * all.key_width + head / all.group() * all.head_width),
        lse_at(head * all.tokens + start),
        probs_at(index * all.longest * all.longest) {}
  // Of the same sequence, so many heads later.
  HD Pair later(const Pairs& all, int64_t heads) const {
    Pair pair = *this;
    pair.head += heads;
    pair.at += heads * all.head_width;
    pair.lse_at += heads * all.tokens;
    pair.probs_at += heads * all.longest * all.longest;
    return pair;
  }
};

// Fills rows that no sequence covers, in up to two matrices (T, width) and lse (heads, T); each may be null. A block tests one row a
// thread at a time.
template <class T>
struct ClearUncovered {
  Pairs pairs;
  int64_t width;
  T *a, *b, *lse;

  HD int64_t items(int threads) const { return ceil_div(pairs.tokens, threads); }
  HD static T covered() { return T(1); }
  // The value that fills row t, or covered().
  HD T filling(int64_t t) const {
    T with = 0;
    for (int64_t s = 0; s < pairs.sequences; ++s) {
      if (!pairs.sound(s))
        with = T(NAN);
      else if (t >= pairs.starts[s] && t < int64_t{pairs.starts[s]} + pairs.lengths[s])
        return covered();
    }
    return with;
  }
  // Rows [first, first + threads). `shared` holds one number a thread, less than any tile.
  template <class Group>
  KERNEL void clear(Group& g, T* shared, int64_t first) const {
    const T own = first + g.thread() < pairs.tokens ? filling(first + g.thread()) : covered();
    if (g.reduce(own == covered() ? 0 : 1, Largest{}) == 0) return;
    shared[g.thread()] = own;
    g.sync();
    for (int row = 0; row < g.threads(); ++row) {
      const T with = shared[row];
      if (with == covered()) continue;
      const int64_t t = first + row;
      for (int64_t d = g.thread(); d < width; d += g.threads()) {
        if (a) a[t * width + d] = with;
        if (b) b[t * width + d] = with;
      }
      for (int64_t head = g.thread(); lse && head < pairs.heads; head += g.threads()) lse[head * pairs.tokens + t] = with;
    }
    g.sync();
  }
};

// Common to the three kernels. A tile of Q, K, V is (side, padded head width) with row stride ld(). Scores are (side, chunk) with
// row stride score_ld(); a chunk is as many whole tiles of columns as fit, usually all. Row strides have 4 extra floats: without
// them a column would lie in one memory bank. kParts threads sum a row, each over its own columns.
template <class T>
struct AttentionTiles {
  static constexpr int kParts = 8;
  Pairs pairs;
  int64_t item_heads;  // heads whose rows an item owns: all of the queries, or those of the keys
  int side, padded, chunk;
  bool tf32;
  bool by_four;  // rows of features in memory may be read and written four at a time
  T scale;
  DropoutSite<T> site;
  ClearUncovered<T> uncovered;

  HD int ld() const { return padded + 4; }
  HD int score_ld() const { return chunk + 4; }
  HD int features() const { return side * ld(); }
  HD int scores() const { return side * score_ld(); }
  HD int parts() const { return side < kParts ? side : kParts; }
  HD int64_t tiles() const { return ceil_div(pairs.longest, side); }
  HD int64_t items() const { return pairs.sequences * item_heads * tiles(); }
  // Keys from this one on are seen by none of the rows [first, first + side).
  HD int seen(int first, int length) const { return pairs.causal && first + side < length ? first + side : length; }
  HD bool sees(int i, int j) const { return !pairs.causal || j <= i; }
  // Columns of the chunk from `begin` on, with `length` columns in all.
  HD int columns(int begin, int length) const { return length - begin < chunk ? length - begin : chunk; }

  // body(pair, its length, first row of the item) for the block's items; an item of a key head has the first pair of its group. The last
  // items clear rows without a sequence.
  template <class Group, class Body>
  KERNEL void each_item(Group& g, const Body& body) const {
    for (int64_t item = g.block(); item < items() + uncovered.items(g.threads()); item += g.blocks())
      if (item < items()) {
        const Pair pair(pairs, item / tiles() * (pairs.heads / item_heads));
        body(pair, static_cast<int>(pair.length), static_cast<int>(item % tiles()) * side);
      } else {
        uncovered.clear(g, g.template shared<T>(), (item - items()) * g.threads());
      }
  }
  // Rounded to TF32 where the products are.
  HD Four<T> operands(Four<T> four) const {
    if constexpr (sizeof(T) == sizeof(float))
      if (tf32)
        for (T& x : four.v) x = tf32_of(x);
    return four;
  }

  // tile = rows [first, first + side) of the pair's columns, of queries and of keys; rows past its length are 0.
  template <class Group>
  KERNEL void load(const Group& g, T* tile, const T* from, const Pair& pair, int first) const {
    load_rows(g, tile, from + pair.at + first * pairs.width, pairs.width, pair, first);
  }
  template <class Group>
  KERNEL void load_keys(const Group& g, T* tile, const T* from, const Pair& pair, int first) const {
    load_rows(g, tile, from + pair.key_at + first * pairs.key_width, pairs.key_width, pair, first);
  }
  template <class Group>
  KERNEL void load_rows(const Group& g, T* tile, const T* rows, int64_t step, const Pair& pair, int first) const {
    load_tile(g, tile, ld(), side, padded, rows, step, static_cast<int>(pair.length) - first, static_cast<int>(pairs.head_width), by_four,
              [this](const Four<T>& four) { return operands(four); });
  }
  template <class Group>
  KERNEL void clear(const Group& g, T* tile) const {
    for (int e = 4 * g.thread(); e < features(); e += 4 * g.threads()) four_at(tile + e) = Four<T>{};
  }
  // Writes the tile's rows that belong to the pair; the inverses of load() and load_keys().
  template <class Group>
  KERNEL void store(const Group& g, T* to, const T* tile, const Pair& pair, int first) const {
    store_rows(g, to + pair.at + first * pairs.width, pairs.width, tile, pair, first);
  }
  template <class Group>
  KERNEL void store_keys(const Group& g, T* to, const T* tile, const Pair& pair, int first) const {
    store_rows(g, to + pair.key_at + first * pairs.key_width, pairs.key_width, tile, pair, first);
  }
  template <class Group>
  KERNEL void store_rows(const Group& g, T* rows, int64_t step, const T* tile, const Pair& pair, int first) const {
    const int fours = padded / 4, wide = static_cast<int>(pairs.head_width), left = static_cast<int>(pair.length) - first;
    for (int e = g.thread(); e < side * fours; e += g.threads()) {
      const int r = e / fours, d = e % fours * 4;
      if (r < left && d < wide) write_four(rows + r * step, d, wide, by_four, four_at(tile + r * ld() + d));
    }
  }
  // s (side, side) = a b^T of two tiles. `second`: runs next to another product (tile_product.h).
  template <class Group>
  KERNEL void dots(Group& g, T* s, const T* a, const T* b, bool second = false) const {
    multiply_tiles<T>(g, tf32, s, score_ld(), false, {a, ld()}, Tile<T>{b, ld()}.transposed(), side, side, padded, second);
  }
  // out (side, padded) += weights b, or weights^T b where `turned`; weights (side, side) are columns of scores.
  template <class Group>
  KERNEL void accumulate(Group& g, T* out, const T* weights, bool turned, const T* b) const {
    multiply_tiles<T>(g, tf32, out, ld(), true, {weights, score_ld(), turned}, {b, ld()}, side, padded, side);
  }
  // body(offset, tile) for each tile of rows [begin, begin + columns) of `from`, which is K or V; `tiles` holds two at a time.
  template <class Group, class Body>
  KERNEL void each_tile(Group& g, T* tiles, const T* from, const Pair& pair, int begin, int columns, const Body& body) const {
    for (int at = 0; at < columns; at += 2 * side) {
      const bool both = at + side < columns;
      load_keys(g, tiles, from, pair, begin + at);
      if (both) load_keys(g, tiles + features(), from, pair, begin + at + side);
      g.sync();
      body(at, tiles);
      if (both) body(at + side, tiles + features());
      g.sync();
    }
  }
  // out += s from, with s the scores of a chunk and the rows of `from` that belong to its columns.
  template <class Group>
  KERNEL void accumulate_all(Group& g, T* out, const T* s, T* tiles, const T* from, const Pair& pair, int begin, int columns) const {
    each_tile(g, tiles, from, pair, begin, columns, [&](int at, const T* tile) { accumulate(g, out, s + at, false, tile); });
  }
  // body(row, column) for every fourth column, up to `columns` rounded up to whole tiles, in every row of the scores.
  template <class Group, class Body>
  KERNEL void each_four(const Group& g, int columns, const Body& body) const {
    const int fours = round_up(columns, side) / 4;
    for (int four = g.thread(); four < side * fours; four += g.threads()) body(four / fours, four % fours * 4);
  }
  // body(row, part): part p sums columns p, p + kParts, ... of its row.
  template <class Group, class Body>
  KERNEL void each_part(const Group& g, const Body& body) const {
    for (int e = g.thread(); e < side * parts(); e += g.threads()) body(e / parts(), e % parts());
  }
  HD int64_t word(const Pair& pair, int i, int j) const { return pair.probs_at + i * pairs.longest + j; }
};

template <class T>
struct AttentionForward {
  static constexpr int kParts = AttentionTiles<T>::kParts;
  static constexpr bool kChunks = true;
  AttentionTiles<T> t;
  const T *q, *k, *v;
  T *out, *lse, *probs;  // probs may be null

  static int64_t shared_count(int64_t side, int64_t ld, int64_t chunk) { return side * (4 * ld + (chunk + 4) + 2 * kParts); }

  // s = block's queries times the keys of a chunk.
  template <class Group>
  KERNEL void dots(Group& g, T* s, const T* tq, T* tiles, const Pair& pair, int begin, int columns) const {
    t.each_tile(g, tiles, k, pair, begin, columns, [&](int at, const T* tile) { t.dots(g, s + at, tq, tile, at / t.side % 2 != 0); });
  }

  // Kept probabilities have no undefined entry.
  template <class Group>
  KERNEL void clear_unused(const Group& g, const Pair& pair, int n, int first) const {
    const int64_t longest = t.pairs.longest;
    const int computed = t.seen(first, n);
    for (int i = first; probs && computed < longest && i < first + t.side && i < longest; ++i)
      for (int64_t j = (i < n ? computed : 0) + g.thread(); j < longest; j += g.threads()) probs[pair.probs_at + i * longest + j] = 0;
  }

  // Takes the scores of a chunk into the largest score and the sum of exponentials of each part of a row.
  template <class Group>
  KERNEL void add_chunk(const Group& g, const T* s, T* most, T* total, int first, int begin, int all_columns) const {
    t.each_part(g, [&](int r, int part) {
      const int own = first + r - begin + 1, columns = t.pairs.causal && own < all_columns ? own : all_columns;
      if (part >= columns) return;
      const T* row = s + r * t.score_ld();
      T& top = most[r * kParts + part];
      T& mass = total[r * kParts + part];
      T largest = top, sum_of_part = 0;
      for (int j = part; j < columns; j += kParts) largest = Largest{}(largest, t.scale * row[j]);
      for (int j = part; j < columns; j += kParts) sum_of_part += fast::exp(t.scale * row[j] - largest);
      mass = mass * fast::exp(top - largest) + sum_of_part;
      top = largest;
    });
  }

  // The largest score of each row goes to its first part of `most`, 1 / the sum of exponentials to that of `total`; rows < `rows` get lse.
  template <class Group>
  KERNEL void join_parts(const Group& g, T* most, T* total, T* logs, int n, int first) const {
    const int rows = n - first;
    for (int r = g.thread(); r < t.side; r += g.threads()) {
      T *tops = most + r * kParts, *masses = total + r * kParts, largest = tops[0], all = 0;
      const int keys = t.pairs.causal && first + r + 1 < n ? first + r + 1 : n, parts = keys < t.parts() ? keys : t.parts();
      for (int part = 1; part < parts; ++part) largest = Largest{}(largest, tops[part]);
      for (int part = 0; part < parts; ++part) all += masses[part] * fast::exp(tops[part] - largest);
      tops[0] = largest;
      masses[0] = T(1) / all;
      if (r < rows) logs[r] = largest + std::log(all);
    }
  }

  // Scores of the chunk from `begin` on become probabilities after dropout.
  template <class Group>
  KERNEL void weigh(const Group& g, T* s, const T* most, const T* total, DropoutWords<T>& words, const Pair& pair, int n, int first,
                    int begin, int columns) const {
    t.each_four(g, columns, [&](int row, int column) {
      const int i = first + row;
      const T top = most[row * kParts], share = total[row * kParts];
      Four<T>& four = four_at(s + row * t.score_ld() + column);
      for (int l = 0; l < 4; ++l) {
        const int j = begin + column + l;
        T p = 0;
        if (i < n && j < n) {
          if (t.sees(i, j)) p = fast::exp(t.scale * four.v[l] - top) * share;
          const int64_t at = t.word(pair, i, j);
          if (probs) probs[at] = p;
          p = words.apply(p, at);
        }
        four.v[l] = p;
      }
      four = t.operands(four);
    });
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *tiles = tq + t.features(), *sum = tiles + 2 * t.features(), *s = sum + t.features();
    T *most = s + t.scores(), *total = most + side * kParts;  // a part of a row: largest score, sum of exponentials
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      clear_unused(g, pair, n, first);
      if (first >= n) return;
      t.load(g, tq, q, pair, first);
      t.clear(g, sum);
      t.each_part(g, [&](int r, int part) {
        most[r * kParts + part] = -static_cast<T>(INFINITY);
        total[r * kParts + part] = 0;
      });
      const int keys = t.seen(first, n);
      for (int begin = 0; begin < keys; begin += t.chunk) {
        const int columns = t.columns(begin, keys);
        dots(g, s, tq, tiles, pair, begin, columns);
        add_chunk(g, s, most, total, first, begin, columns);
        g.sync();
      }
      join_parts(g, most, total, lse + pair.lse_at + first, n, first);
      g.sync();
      DropoutWords<T> words(t.site);
      for (int begin = 0; begin < keys; begin += t.chunk) {
        const int columns = t.columns(begin, keys);
        if (keys > t.chunk) dots(g, s, tq, tiles, pair, begin, columns);  // a later chunk has overwritten these scores
        weigh(g, s, most, total, words, pair, n, first, begin, columns);
        t.accumulate_all(g, sum, s, tiles, v, pair, begin, columns);
      }
      t.store(g, out, sum, pair, first);
      g.sync();
    });
  }
};

// Inputs of both backward kernels.
template <class T>
struct AttentionSaved {
  const T *q, *k, *v, *dout, *lse, *probs;  // probs null: computed again from q, k and lse

  // Probability of score (i, j) before and after dropout; `dot` is query i times key j.
  struct Entry {
    T p, dropped;
  };
  KERNEL Entry entry(const AttentionTiles<T>& t, DropoutWords<T>& words, const Pair& pair, int i, int j, T dot, T lse_of_row) const {
    if (i >= pair.length || j >= pair.length || !t.sees(i, j)) return {};
    const int64_t at = t.word(pair, i, j);
    const T p = probs ? probs[at] : probability_again(t.scale * dot, lse_of_row);
    return {p, words.apply(p, at)};
  }
};

// dQ, and delta (heads, T) = sum over keys of (probability after dropout) (its gradient).
template <class T>
struct AttentionBackwardQ {
  static constexpr int kParts = AttentionTiles<T>::kParts;
  static constexpr bool kChunks = true;
  AttentionTiles<T> t;
  AttentionSaved<T> saved;
  T *delta, *dq;

  static int64_t shared_count(int64_t side, int64_t ld, int64_t chunk) { return side * (5 * ld + 2 * (chunk + 4) + 1 + kParts); }

  // For a chunk: s = probability, dp = (probability after dropout) (its gradient).
  template <class Group>
  KERNEL void entries(Group& g, T* s, T* dp, const T* tq, const T* td, T* tk, T* tv, const T* logs, const Pair& pair, int first, int begin,
                      int columns) const {
    for (int at = 0; at < columns; at += t.side) {
      if (!saved.probs) t.load_keys(g, tk, saved.k, pair, begin + at);
      t.load_keys(g, tv, saved.v, pair, begin + at);
      g.sync();
      if (!saved.probs) t.dots(g, s + at, tq, tk);
      t.dots(g, dp + at, td, tv, true);
      g.sync();
    }
    DropoutWords<T> words(t.site);
    t.each_four(g, columns, [&](int row, int column) {
      const int at = row * t.score_ld() + column;
      Four<T>&p = four_at(s + at), &gradient = four_at(dp + at);
      for (int l = 0; l < 4; ++l) {
        const auto entry = saved.entry(t, words, pair, first + row, begin + column + l, p.v[l], logs[row]);
        p.v[l] = entry.p;
        gradient.v[l] *= entry.dropped;
      }
    });
    g.sync();
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *td = tq + t.features(), *tk = td + t.features(), *tv = tk + t.features(), *sum = tv + t.features();
    T *s = sum + t.features(), *dp = s + t.scores(), *logs = dp + t.scores(), *deltas = logs + side;  // deltas: one a part of a row
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      if (first >= n) return;
      if (!saved.probs) t.load(g, tq, saved.q, pair, first);
      t.load(g, td, saved.dout, pair, first);
      t.clear(g, sum);
      for (int r = g.thread(); r < side; r += g.threads()) logs[r] = first + r < n ? saved.lse[pair.lse_at + first + r] : T(0);
      t.each_part(g, [&](int r, int part) { deltas[r * kParts + part] = 0; });
      const int keys = t.seen(first, n);
      for (int begin = 0; begin < keys; begin += t.chunk) {
        const int columns = t.columns(begin, keys);
        entries(g, s, dp, tq, td, tk, tv, logs, pair, first, begin, columns);
        t.each_part(g, [&](int r, int part) {
          for (int j = part; j < columns; j += kParts) deltas[r * kParts + part] += dp[r * t.score_ld() + j];
        });
        g.sync();
      }
      for (int r = g.thread(); r < side; r += g.threads()) {
        T& all = deltas[r * kParts];
        for (int part = 1; part < t.parts(); ++part) all += deltas[r * kParts + part];
        if (first + r < n) delta[pair.lse_at + first + r] = all;
      }
      g.sync();
      for (int begin = 0; begin < keys; begin += t.chunk) {
        const int columns = t.columns(begin, keys);
        if (keys > t.chunk) entries(g, s, dp, tq, td, tk, tv, logs, pair, first, begin, columns);  // overwritten by a later chunk
        t.each_four(g, columns, [&](int row, int column) {
          const int at = row * t.score_ld() + column;
          Four<T>& p = four_at(s + at);
          const Four<T> gradient = four_at(dp + at);
          for (int l = 0; l < 4; ++l) p.v[l] = t.scale * (gradient.v[l] - p.v[l] * deltas[row * kParts]);
          p = t.operands(p);
        });
        t.accumulate_all(g, sum, s, tk, saved.k, pair, begin, columns);
      }
      t.store(g, dq, sum, pair, first);
      g.sync();
    });
  }
};

template <class T>
struct AttentionBackwardKV {
  static constexpr bool kChunks = false;
  AttentionTiles<T> t;
  AttentionSaved<T> saved;
  const T* delta;
  T *dk, *dv;

  static int64_t shared_count(int64_t side, int64_t ld, int64_t chunk) { return side * (6 * ld + 2 * (chunk + 4) + 2); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *td = tq + t.features(), *tk = td + t.features(), *tv = tk + t.features();
    T *sum_k = tv + t.features(), *sum_v = sum_k + t.features(), *s = sum_v + t.features(), *dp = s + t.scores();
    T *logs = dp + t.scores(), *deltas = logs + side;
    t.each_item(g, [&](const Pair& first_of_group, int n, int first) {
      if (first >= n) return;
      if (!saved.probs) t.load_keys(g, tk, saved.k, first_of_group, first);
      t.load_keys(g, tv, saved.v, first_of_group, first);
      t.clear(g, sum_k);
      t.clear(g, sum_v);
      DropoutWords<T> words(t.site);
      const int queries = t.pairs.causal ? first : 0, tiles = ceil_div(n - queries, side), members = static_cast<int>(t.pairs.group());
      for (int tile = 0; tile < members * tiles; ++tile) {
        const Pair pair = first_of_group.later(t.pairs, tile / tiles);
        const int query = queries + tile % tiles * side;
        t.load(g, tq, saved.q, pair, query);
        t.load(g, td, saved.dout, pair, query);
        for (int r = g.thread(); r < side; r += g.threads()) {
          logs[r] = query + r < n ? saved.lse[pair.lse_at + query + r] : T(0);
          deltas[r] = query + r < n ? delta[pair.lse_at + query + r] : T(0);
        }
        g.sync();
        if (!saved.probs) t.dots(g, s, tq, tk);
        t.dots(g, dp, td, tv, true);
        g.sync();
        t.each_four(g, side, [&](int row, int column) {
          const int at = row * t.score_ld() + column;
          Four<T>&of_s = four_at(s + at), &of_dp = four_at(dp + at);
          const T log_of_row = logs[row], delta_of_row = deltas[row];
          for (int l = 0; l < 4; ++l) {
            const auto entry = saved.entry(t, words, pair, query + row, first + column + l, of_s.v[l], log_of_row);
            of_s.v[l] = t.scale * (entry.dropped * of_dp.v[l] - entry.p * delta_of_row);
            of_dp.v[l] = entry.dropped;
          }
          of_s = t.operands(of_s);
          of_dp = t.operands(of_dp);
        });
        g.sync();
        t.accumulate(g, sum_v, dp, true, td);
        t.accumulate(g, sum_k, s, true, tq);
        g.sync();
      }
      t.store_keys(g, dk, sum_k, first_of_group, first);
      t.store_keys(g, dv, sum_v, first_of_group, first);
      g.sync();
    });
  }
};

// One angle of a token.
template <class T>
struct RotaryTable {
  T* table;
  const int* positions;
  int64_t half;
  RotaryAngles angles;
  KERNEL void operator()(int64_t at) const {
    const int64_t token = at / half, i = at % half;
    const Turn turn = angles(positions[token], i);
    table[2 * token * half + i] = static_cast<T>(turn.cos);
    table[(2 * token + 1) * half + i] = static_cast<T>(turn.sin);
  }
};

// One pair of features of a token.
template <class T>
struct Rotate {
  T* y;
  const T *x, *table;
  int64_t pairs, half;  // of a token; of a head
  bool back;
  KERNEL void operator()(int64_t at) const {
    const int64_t token = at / pairs, pair = at % pairs, i = pair % half, a = 2 * (at - i) + i, b = a + half;
    const T* angles = table + 2 * token * half;
    const Rotated<T> turned(x[a], x[b], angles[i], angles[half + i], back);
    y[a] = turned.a;
    y[b] = turned.b;
  }
};

struct TileSize {
  int side, padded, chunk;  // rows; head width, padded as the products need it; columns of scores
  bool tf32;
  int64_t shared_bytes;
};

// The largest tile whose shared memory fits every device. `rounded`: TF32 on tensor cores, where the sides allow it.
template <class T, class Body>
TileSize tile_size(int64_t head_width, int64_t longest, bool rounded) {
  for (const int side : {32, 16, 8, 4}) {
    const bool tf32 = rounded && sizeof(T) == sizeof(float) && side % kTf32Side == 0;
    const int64_t multiple = tf32 ? kTf32Side : 4, padded = round_up(head_width, multiple);
    const auto bytes = [&](int64_t chunk) { return Body::shared_count(side, padded + 4, chunk) * static_cast<int64_t>(sizeof(T)); };
    if (bytes(side) > kSharedBytes) continue;
    int64_t chunk = side;
    while (Body::kChunks && chunk < longest && bytes(chunk + side) <= kSharedBytes) chunk += side;
    return {side, static_cast<int>(padded), static_cast<int>(chunk), tf32, bytes(chunk)};
  }
  throw Error(ErrorCode::config, "attention heads of " + std::to_string(head_width) + " features are too wide for the CUDA ops",
              "a tile does not fit the shared memory of a block", "use more heads, or --device cpu");
}

// `item_heads`: AttentionTiles. `matrices`: those whose tiles are loaded and stored (for alignment); `rest`: the members of Body behind its
// tiles.
template <template <class> class Body, class T, class Machine, class... Rest>
void launch_tiles(Machine& machine, const Pairs& pairs, int64_t item_heads, const DropoutSite<T>& site, const ClearUncovered<T>& uncovered,
                  std::initializer_list<const T*> matrices, const Rest&... rest) {
  const TileSize size = tile_size<T, Body<T>>(pairs.head_width, pairs.longest, machine.products() != Products::fp32);
  bool by_four = pairs.head_width % 4 == 0;
  for (const T* matrix : matrices) by_four = by_four && of_fours(pairs.width, matrix);
  const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(pairs.head_width)));
  const Body<T> body{{pairs, item_heads, size.side, size.padded, size.chunk, size.tf32, by_four, scale, site, uncovered}, rest...};
  LaunchShape shape = over_items(body.t.items(), int64_t{size.side} * std::max(size.side, size.padded), size.shared_bytes);
  shape.blocks = std::min(body.t.items() + uncovered.items(shape.threads), kMostBlocks);
  machine.launch(shape, body);
}

// Probabilities of a part of a batch, positions that no sequence covers included.
template <class Args>
int64_t probabilities(const Args& args) {
  return args.sequences.starts.count() * args.heads.heads * args.sequences.longest * args.sequences.longest;
}

template <class M>
void GpuOps<M>::body(const op::AttentionForward& args) {
  begin(args, args.q.shape());
  const Pairs pairs(args.q, args.sequences, args.heads);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const T *of_q = args.q.data<T>(), *of_k = args.k.data<T>(), *of_v = args.v.data<T>();
    T *to = args.out.data<T>(), *logs = args.lse.data<T>();
    const DropoutSite<T> site(args.dropout, args.step, probabilities(args));
    launch_tiles<AttentionForward, T>(machine_, pairs, pairs.heads, site, {pairs, pairs.width, to, nullptr, logs}, {of_q, of_k, of_v, to},
                                      of_q, of_k, of_v, to, logs, args.probs ? args.probs.data<T>() : nullptr);
  });
}

template <class M>
void GpuOps<M>::body(const op::AttentionBackward& args) {
  begin(args, args.q.shape());
  const Pairs pairs(args.q, args.sequences, args.heads);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const AttentionSaved<T> saved{args.q.data<T>(),    args.k.data<T>(),   args.v.data<T>(),
                                  args.dout.data<T>(), args.lse.data<T>(), args.probs ? args.probs.data<T>() : nullptr};
    const DropoutSite<T> site(args.dropout, args.step, probabilities(args));
    T *delta = machine_.template scratch<T>(args.lse.count()), *to_q = args.dq.data<T>(), *to_k = args.dk.data<T>(),
      *to_v = args.dv.data<T>();
    launch_tiles<AttentionBackwardQ, T>(machine_, pairs, pairs.heads, site, {pairs, pairs.width, to_q, nullptr, nullptr},
                                        {saved.q, saved.k, saved.v, saved.dout, to_q}, saved, delta, to_q);
    launch_tiles<AttentionBackwardKV, T>(machine_, pairs, pairs.key_heads, site, {pairs, pairs.key_width, to_k, to_v, nullptr},
                                         {saved.q, saved.k, saved.v, saved.dout, to_k, to_v}, saved, delta, to_k, to_v);
  });
}

template <class M>
void GpuOps<M>::body(const op::RotaryTable& args) {
  begin(args, args.table.shape());
  const int64_t width = args.table.size(1);
  by_float_type(args.table, [&](auto type) {
    using T = decltype(type);
    each(args.table.count() / 2,
         RotaryTable<T>{args.table.data<T>(), args.positions.data<int>(), width / 2, RotaryAngles(args.theta, width)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Rotate& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count() / 2,
         Rotate<T>{args.y.data<T>(), args.x.data<T>(), args.table.data<T>(), args.y.size(1) / 2, args.table.size(1) / 2, args.back});
  });
}

}  // namespace comera::gpu
