// What the kernels of attention share: the rows of a block in one (sequence, head), their tiles in shared memory, and rows without a
// sequence.
#pragma once
#include "gpu/gpu_ops.h"
#include "gpu/tile_product.h"

namespace comera::gpu {

struct Pairs {
  const int *starts, *lengths;
  int64_t sequences, heads, key_heads, longest, tokens, width, head_width, key_width, key_step;
  bool causal;

  Pairs(const Tensor& q, const Mat& k, const Sequences& s, const AttentionHeads& h)
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
        key_step(k.ld),
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
  int64_t rows_at, probs_at;  // first row and element of the pair in probs; the element is its first dropout word, too

  HD Pair(const Pairs& all, int64_t index)
      : head(index % all.heads),
        start(all.starts[index / all.heads]),
        length(all.sound(index / all.heads) ? all.lengths[index / all.heads] : 0),
        at(start * all.width + head * all.head_width),
        key_at(start * all.key_step + head / all.group() * all.head_width),
        lse_at(head * all.tokens + start),
        rows_at(index * all.longest),
        probs_at(rows_at * all.longest) {}
  // Of the same sequence, so many heads later.
  HD Pair later(const Pairs& all, int64_t heads) const {
    Pair pair = *this;
    pair.head += heads;
    pair.at += heads * all.head_width;
    pair.lse_at += heads * all.tokens;
    pair.rows_at += heads * all.longest;
    pair.probs_at += heads * all.longest * all.longest;
    return pair;
  }
};

// Fills rows that no sequence covers, in up to two matrices (T, width) of row step `step` and lse (heads, T); each may be null. A block
// tests one row a thread at a time.
template <class T>
struct ClearUncovered {
  Pairs pairs;
  int64_t width, step;
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
        if (a) a[t * step + d] = with;
        if (b) b[t * step + d] = with;
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

  // tile = rows [first, first + rows) of the pair's columns, `side` of them, of queries and of keys; rows past its length are 0.
  template <class Group>
  KERNEL void load(const Group& g, T* tile, const T* from, const Pair& pair, int first, int rows) const {
    load_rows(g, tile, from + pair.at + first * pairs.width, pairs.width, pair, first, rows);
  }
  template <class Group>
  KERNEL void load(const Group& g, T* tile, const T* from, const Pair& pair, int first) const {
    load(g, tile, from, pair, first, side);
  }
  template <class Group>
  KERNEL void load_keys(const Group& g, T* tile, const T* from, const Pair& pair, int first) const {
    load_rows(g, tile, from + pair.key_at + first * pairs.key_step, pairs.key_step, pair, first, side);
  }
  template <class Group>
  KERNEL void load_rows(const Group& g, T* tile, const T* from, int64_t step, const Pair& pair, int first, int rows) const {
    load_tile(g, tile, ld(), rows, padded, from, step, static_cast<int>(pair.length) - first, static_cast<int>(pairs.head_width), by_four,
              [](const Four<T>& four) { return four; });
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
    store_rows(g, to + pair.key_at + first * pairs.key_step, pairs.key_step, tile, pair, first);
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
    multiply_tiles<T>(g, s, score_ld(), false, Tile<T>{a, ld()}, Tile<T>{b, ld()}.transposed(), side, side, padded, second);
  }
  // out (side, padded) += weights b, or weights^T b where `turned`; weights (side, side) are columns of scores.
  template <class Group>
  KERNEL void accumulate(Group& g, T* out, const T* weights, bool turned, const T* b) const {
    multiply_tiles<T>(g, out, ld(), true, Tile<T>{weights, score_ld(), turned}, Tile<T>{b, ld()}, side, padded, side);
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
  // Kept probabilities have no undefined entry.
  template <class Group>
  KERNEL void clear_unused(const Group& g, T* probs, const Pair& pair, int n, int first) const {
    const int64_t longest = pairs.longest;
    const int computed = seen(first, n);
    for (int i = first; probs && computed < longest && i < first + side && i < longest; ++i)
      for (int64_t j = (i < n ? computed : 0) + g.thread(); j < longest; j += g.threads()) probs[pair.probs_at + i * longest + j] = 0;
  }
  HD int64_t word(const Pair& pair, int i, int j) const { return pair.probs_at + i * pairs.longest + j; }
};

}  // namespace comera::gpu
