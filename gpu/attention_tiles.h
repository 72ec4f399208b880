// What the kernels of attention share: the rows of a block in one (sequence, head), their tiles in shared memory, and rows without a
// sequence.
#pragma once
#include "gpu/gpu_ops.h"
#include "gpu/tile_product.h"

namespace comera::gpu {

struct Pairs {
  const int *starts, *lengths;
  int64_t sequences, heads, key_heads, value_heads, longest, tokens;
  int64_t head_width, width, key_step;         // of Q and K: columns of a head; row steps
  int64_t value_width, mean_step, value_step;  // of V and the means: columns of a head; row steps
  bool causal;

  Pairs(const Tensor& q, const Mat& k, const Mat& v, const Sequences& s, const AttentionHeads& h)
      : starts(s.starts.data<int>()),
        lengths(s.lengths.data<int>()),
        sequences(s.starts.count()),
        heads(h.heads),
        key_heads(h.key_heads),
        value_heads(h.value_heads),
        longest(s.longest),
        tokens(q.size(0)),
        head_width(q.size(1) / heads),
        width(q.size(1)),
        key_step(k.ld),
        value_width(v.cols / value_heads),
        mean_step(value_width * heads),
        value_step(v.ld),
        causal(h.causal) {}
  HD int64_t key_group() const { return heads / key_heads; }      // query heads on a head of keys
  HD int64_t value_group() const { return heads / value_heads; }  // and of values
  int64_t widest() const { return std::max(head_width, value_width); }
  HD bool sound(int64_t s) const {
    return lengths[s] >= 0 && lengths[s] <= longest && (lengths[s] == 0 || (starts[s] >= 0 && int64_t{starts[s]} + lengths[s] <= tokens));
  }
};

// One of the (sequence, head) pairs.
struct Pair {
  int64_t head, start, length;
  int64_t at, key_at, mean_at, value_at;  // first element of the head's columns in Q, K, the means, V and their gradients
  int64_t lse_at;
  int64_t rows_at, probs_at;  // first row and element of the pair in probs; the element is that of its dropout, too

  HD Pair(const Pairs& all, int64_t index)
      : head(index % all.heads),
        start(all.starts[index / all.heads]),
        length(all.sound(index / all.heads) ? all.lengths[index / all.heads] : 0),
        at(start * all.width + head * all.head_width),
        key_at(start * all.key_step + head / all.key_group() * all.head_width),
        mean_at(start * all.mean_step + head * all.value_width),
        value_at(start * all.value_step + head / all.value_group() * all.value_width),
        lse_at(head * all.tokens + start),
        rows_at(index * all.longest),
        probs_at(rows_at * all.longest) {}
  // Of the same sequence, so many heads later.
  HD Pair later(const Pairs& all, int64_t heads) const {
    Pair pair = *this;
    pair.head += heads;
    pair.at += heads * all.head_width;
    pair.key_at += (pair.head / all.key_group() - head / all.key_group()) * all.head_width;
    pair.mean_at += heads * all.value_width;
    pair.value_at += (pair.head / all.value_group() - head / all.value_group()) * all.value_width;
    pair.lse_at += heads * all.tokens;
    pair.rows_at += heads * all.longest;
    pair.probs_at += heads * all.longest * all.longest;
    return pair;
  }
};

// Columns of a matrix of T rows, or none.
template <class T>
struct ColumnsToFill {
  T* data = nullptr;
  int64_t width = 0, step = 0;
  HD void fill(int64_t row, int64_t column, T with) const {
    if (column < width) data[row * step + column] = with;
  }
};

// Fills rows that no sequence covers, in up to two matrices and lse (heads, T), which may be null. A block tests one row a thread at a
// time.
template <class T>
struct ClearUncovered {
  Pairs pairs;
  ColumnsToFill<T> a, b;
  T* lse;

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
      for (int64_t d = g.thread(); d < a.width || d < b.width; d += g.threads()) {
        a.fill(t, d, with);
        b.fill(t, d, with);
      }
      for (int64_t head = g.thread(); lse && head < pairs.heads; head += g.threads()) lse[head * pairs.tokens + t] = with;
    }
    g.sync();
  }
};

// The columns of a head in the rows of a sequence: first element, row step, columns.
struct HeadRows {
  int64_t at, step;
  int columns, length;
};

// Common to the three kernels. A tile of Q, K, V is (side, width of the wider head, padded) with row stride ld(). Scores are (side, chunk)
// with row stride score_ld(); a chunk is as many whole tiles of columns as fit, usually all. Row strides have 4 extra floats: without them
// a column would lie in one memory bank. kParts threads sum a row, each over its own columns.
template <class T>
struct AttentionTiles {
  static constexpr int kParts = 8;
  Pairs pairs;
  int64_t item_heads;  // heads whose rows an item owns: all of the queries, or those of the values
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

  // body(pair, its length, first row of the item) for the block's items; an item of a head of values has the first pair of its group. The
  // last items clear rows without a sequence.
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

  HD HeadRows rows(int64_t at, int64_t step, int64_t columns, const Pair& pair) const {
    return {at, step, static_cast<int>(columns), static_cast<int>(pair.length)};
  }
  HD HeadRows queries(const Pair& pair) const { return rows(pair.at, pairs.width, pairs.head_width, pair); }
  HD HeadRows keys(const Pair& pair) const { return rows(pair.key_at, pairs.key_step, pairs.head_width, pair); }
  HD HeadRows values(const Pair& pair) const { return rows(pair.value_at, pairs.value_step, pairs.value_width, pair); }
  HD HeadRows means(const Pair& pair) const { return rows(pair.mean_at, pairs.mean_step, pairs.value_width, pair); }

  // tile = rows [first, first + side) of a head; rows past its length are 0.
  template <class Group>
  KERNEL void load(const Group& g, T* tile, const T* from, const HeadRows& rows, int first) const {
    load_tile(g, tile, ld(), side, padded, from + rows.at + first * rows.step, rows.step, rows.length - first, rows.columns, by_four,
              [](const Four<T>& four) { return four; });
  }
  template <class Group>
  KERNEL void clear(const Group& g, T* tile) const {
    for (int e = 4 * g.thread(); e < features(); e += 4 * g.threads()) four_at(tile + e) = Four<T>{};
  }
  // Writes the tile's rows that the sequence has: the inverse of load().
  template <class Group>
  KERNEL void store(const Group& g, T* to, const T* tile, const HeadRows& rows, int first) const {
    const int fours = padded / 4;
    for (int e = g.thread(); e < side * fours; e += g.threads()) {
      const int r = e / fours, d = e % fours * 4;
      if (first + r < rows.length && d < rows.columns)
        write_four(to + rows.at + (first + r) * rows.step, d, rows.columns, by_four, four_at(tile + r * ld() + d));
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
  // body(offset, tile) for each tile of `rows` from `begin` on, `columns` of them; `tiles` holds two at a time.
  template <class Group, class Body>
  KERNEL void each_tile(Group& g, T* tiles, const T* from, const HeadRows& rows, int begin, int columns, const Body& body) const {
    for (int at = 0; at < columns; at += 2 * side) {
      const bool both = at + side < columns;
      load(g, tiles, from, rows, begin + at);
      if (both) load(g, tiles + features(), from, rows, begin + at + side);
      g.sync();
      body(at, tiles);
      if (both) body(at + side, tiles + features());
      g.sync();
    }
  }
  // out += s from, with s the scores of a chunk and the rows of `from` that belong to its columns.
  template <class Group>
  KERNEL void accumulate_all(Group& g, T* out, const T* s, T* tiles, const T* from, const HeadRows& rows, int begin, int columns) const {
    each_tile(g, tiles, from, rows, begin, columns, [&](int at, const T* tile) { accumulate(g, out, s + at, false, tile); });
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
  HD int64_t element(const Pair& pair, int i, int j) const { return pair.probs_at + i * pairs.longest + j; }
};

}  // namespace comera::gpu
