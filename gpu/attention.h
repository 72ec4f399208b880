// Attention by tiles in shared memory, inside each sequence (METHODS.md 15.1). A block computes some rows of one (sequence, head). The
// probabilities form a whole matrix only where backward keeps them. A block holds the scores of its rows for all keys; if they do not fit,
// it passes over the keys twice: for the softmax's maximum and sum, then for the output. Backward has one kernel for dQ, whose blocks own
// rows of queries, and one for dK and dV, whose blocks own rows of keys, so it needs no atomics. A sequence outside the tokens counts as
// empty, and rows that no sequence covers are then NaN instead of 0.
//
// These kernels compute in f64 and in fp32. Where products are rounded, those of row_attention.h take their place. Fused kernels of
// libraries are not an option: they require 16-bit operands and draw their own dropout mask, while this mask equals the CPU's.
#pragma once
#include "core/ops/rotary_math.h"
#include "gpu/row_attention.h"

namespace comera::gpu {

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
    t.each_tile(g, tiles, k, t.keys(pair), begin, columns,
                [&](int at, const T* tile) { t.dots(g, s + at, tq, tile, at / t.side % 2 != 0); });
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
  KERNEL void weigh(const Group& g, T* s, const T* most, const T* total, DropoutDraws<T>& draws, const Pair& pair, int n, int first,
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
          const int64_t at = t.element(pair, i, j);
          if (probs) probs[at] = p;
          p = draws.apply(p, at);
        }
        four.v[l] = p;
      }
    });
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int side = t.side;
    T *tq = g.template shared<T>(), *tiles = tq + t.features(), *sum = tiles + 2 * t.features(), *s = sum + t.features();
    T *most = s + t.scores(), *total = most + side * kParts;  // a part of a row: largest score, sum of exponentials
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      t.clear_unused(g, probs, pair, n, first);
      if (first >= n) return;
      t.load(g, tq, q, t.queries(pair), first);
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
      DropoutDraws<T> draws(t.site);
      for (int begin = 0; begin < keys; begin += t.chunk) {
        const int columns = t.columns(begin, keys);
        if (keys > t.chunk) dots(g, s, tq, tiles, pair, begin, columns);  // a later chunk has overwritten these scores
        weigh(g, s, most, total, draws, pair, n, first, begin, columns);
        t.accumulate_all(g, sum, s, tiles, v, t.values(pair), begin, columns);
      }
      t.store(g, out, sum, t.means(pair), first);
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
  KERNEL Entry entry(const AttentionTiles<T>& t, DropoutDraws<T>& draws, const Pair& pair, int i, int j, T dot, T lse_of_row) const {
    if (i >= pair.length || j >= pair.length || !t.sees(i, j)) return {};
    const int64_t at = t.element(pair, i, j);
    const T p = probs ? probs[at] : probability_again(t.scale * dot, lse_of_row);
    return {p, draws.apply(p, at)};
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
      if (!saved.probs) t.load(g, tk, saved.k, t.keys(pair), begin + at);
      t.load(g, tv, saved.v, t.values(pair), begin + at);
      g.sync();
      if (!saved.probs) t.dots(g, s + at, tq, tk);
      t.dots(g, dp + at, td, tv, true);
      g.sync();
    }
    DropoutDraws<T> draws(t.site);
    t.each_four(g, columns, [&](int row, int column) {
      const int at = row * t.score_ld() + column;
      Four<T>&p = four_at(s + at), &gradient = four_at(dp + at);
      for (int l = 0; l < 4; ++l) {
        const auto entry = saved.entry(t, draws, pair, first + row, begin + column + l, p.v[l], logs[row]);
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
      if (!saved.probs) t.load(g, tq, saved.q, t.queries(pair), first);
      t.load(g, td, saved.dout, t.means(pair), first);
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
        });
        t.accumulate_all(g, sum, s, tk, saved.k, t.keys(pair), begin, columns);
      }
      t.store(g, dq, sum, t.queries(pair), first);
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
    t.each_item(g, [&](const Pair& first_of_values, int n, int first) {
      if (first >= n) return;
      t.load(g, tv, saved.v, t.values(first_of_values), first);
      t.clear(g, sum_v);
      DropoutDraws<T> draws(t.site);
      const int queries = t.pairs.causal ? first : 0, tiles = ceil_div(n - queries, side), members = static_cast<int>(t.pairs.key_group());
      for (int64_t member = 0; member < t.pairs.value_group(); member += members) {
        const Pair first_of_keys = first_of_values.later(t.pairs, member);
        if (!saved.probs) t.load(g, tk, saved.k, t.keys(first_of_keys), first);
        t.clear(g, sum_k);
        for (int tile = 0; tile < members * tiles; ++tile) {
          const Pair pair = first_of_keys.later(t.pairs, tile / tiles);
          const int query = queries + tile % tiles * side;
          t.load(g, tq, saved.q, t.queries(pair), query);
          t.load(g, td, saved.dout, t.means(pair), query);
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
              const auto entry = saved.entry(t, draws, pair, query + row, first + column + l, of_s.v[l], log_of_row);
              of_s.v[l] = t.scale * (entry.dropped * of_dp.v[l] - entry.p * delta_of_row);
              of_dp.v[l] = entry.dropped;
            }
          });
          g.sync();
          t.accumulate(g, sum_v, dp, true, td);
          t.accumulate(g, sum_k, s, true, tq);
          g.sync();
        }
        t.store(g, dk, sum_k, t.keys(first_of_keys), first);
        g.sync();
      }
      t.store(g, dv, sum_v, t.values(first_of_values), first);
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
  int side, padded, chunk;  // rows; head width, padded to a multiple of 4; columns of scores
  int64_t shared_bytes;
};

// The largest tile whose shared memory fits every device; `width`: of the wider head.
template <class T, class Body>
TileSize tile_size(int64_t width, int64_t longest) {
  const int64_t padded = round_up(width, 4);
  for (const int side : {32, 16, 8, 4}) {
    const auto bytes = [&](int64_t chunk) { return Body::shared_count(side, padded + 4, chunk) * static_cast<int64_t>(sizeof(T)); };
    if (bytes(side) > kSharedBytes) continue;
    int64_t chunk = side;
    while (Body::kChunks && chunk < longest && bytes(chunk + side) <= kSharedBytes) chunk += side;
    return {side, static_cast<int>(padded), static_cast<int>(chunk), bytes(chunk)};
  }
  throw Error(ErrorCode::config, "attention heads of " + std::to_string(width) + " features are too wide for the CUDA ops",
              "a tile does not fit the shared memory of a block", "use more heads, or --device cpu");
}

// Without the size of a tile. `item_heads`: AttentionTiles. `matrices`: those whose tiles are loaded and stored (for alignment).
template <class T>
AttentionTiles<T> tiles_without_size(const Pairs& pairs, int64_t item_heads, const DropoutSite<T>& site, const ClearUncovered<T>& uncovered,
                                     std::initializer_list<const T*> matrices) {
  bool by_four = true;
  for (const int64_t count : {pairs.head_width, pairs.key_step, pairs.value_width, pairs.value_step}) by_four = by_four && count % 4 == 0;
  for (const T* matrix : matrices) by_four = by_four && of_fours(pairs.width, matrix);
  return {pairs, item_heads, 0, 0, 0, by_four, static_cast<T>(1.0 / std::sqrt(static_cast<double>(pairs.head_width))), site, uncovered};
}

// The members of Body behind its tiles are `rest`.
template <template <class> class Body, class T, class Machine, class... Rest>
void launch_tiles(Machine& machine, AttentionTiles<T> tiles, const Rest&... rest) {
  const TileSize size = tile_size<T, Body<T>>(tiles.pairs.widest(), tiles.pairs.longest);
  tiles.side = size.side;
  tiles.padded = size.padded;
  tiles.chunk = size.chunk;
  LaunchShape shape = over_items(tiles.items(), int64_t{size.side} * std::max(size.side, size.padded), size.shared_bytes);
  shape.blocks = std::min(tiles.items() + tiles.uncovered.items(shape.threads), kMostBlocks);
  machine.launch(shape, Body<T>{tiles, rest...});
}

// Whether the kernels of row_attention.h compute it.
template <class T>
bool in_strips(const Pairs& pairs, Products how) {
  return sizeof(T) == sizeof(float) && how != Products::fp32 && pairs.widest() <= kWidestStrip;
}

// Probabilities of a part of a batch, positions that no sequence covers included.
template <class Args>
int64_t probabilities(const Args& args) {
  return args.sequences.starts.count() * args.heads.heads * args.sequences.longest * args.sequences.longest;
}

template <class M>
void GpuOps<M>::body(const op::AttentionForward& args) {
  begin(args, args.q.shape());
  const Pairs pairs(args.q, args.k, args.v, args.sequences, args.heads);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const T *q = args.q.data<T>(), *k = args.k.data<T>(), *v = args.v.data<T>();
    T *out = args.out.data<T>(), *lse = args.lse.data<T>(), *probs = args.probs ? args.probs.data<T>() : nullptr;
    const DropoutSite<T> site(args.dropout, args.step, probabilities(args));
    const auto tiles =
        tiles_without_size<T>(pairs, pairs.heads, site, {pairs, {out, pairs.mean_step, pairs.mean_step}, {}, lse}, {q, k, v, out});
    if constexpr (sizeof(T) == sizeof(float))
      if (in_strips<T>(pairs, machine_.products()))
        return launch_strips<StripForward>(machine_, tiles, of_fours(pairs.longest, probs), q, k, v, out, lse, probs);
    launch_tiles<AttentionForward>(machine_, tiles, q, k, v, out, lse, probs);
  });
}

template <class M>
void GpuOps<M>::body(const op::AttentionBackward& args) {
  begin(args, args.q.shape());
  const Pairs pairs(args.q, args.k, args.v, args.sequences, args.heads);
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const T *q = args.q.data<T>(), *k = args.k.data<T>(), *v = args.v.data<T>(), *dout = args.dout.data<T>(), *lse = args.lse.data<T>(),
            *probs = args.probs ? args.probs.data<T>() : nullptr;
    const DropoutSite<T> site(args.dropout, args.step, probabilities(args));
    T *delta = machine_.template scratch<T>(args.lse.count()), *dq = args.dq.data<T>(), *dk = args.dk.data<T>(), *dv = args.dv.data<T>();
    const auto of_queries =
        tiles_without_size<T>(pairs, pairs.heads, site, {pairs, {dq, pairs.width, pairs.width}, {}, nullptr}, {q, k, v, dout, dq});
    const auto of_keys = tiles_without_size<T>(pairs, pairs.value_heads, site,
                                               {pairs, {dk, args.k.cols, pairs.key_step}, {dv, args.v.cols, pairs.value_step}, nullptr},
                                               {q, k, v, dout, dk, dv});
    if constexpr (sizeof(T) == sizeof(float))
      if (in_strips<T>(pairs, machine_.products())) {
        const StripSaved saved{q, k, v, dout, lse, probs};
        const bool whole = of_fours(pairs.longest, probs);
        const int64_t bytes = pairs.sequences * pairs.heads * pairs.longest * fours_of(pairs.longest);
        uint8_t* keeps = args.dropout.probability > 0 ? machine_.template scratch<uint8_t>(bytes) : nullptr;
        launch_strips<StripBackwardQ>(machine_, of_queries, whole, saved, delta, dq, keeps);
        return launch_strips<StripBackwardKV>(machine_, of_keys, whole, saved, static_cast<const float*>(delta), dk, dv,
                                              static_cast<const uint8_t*>(keeps));
      }
    const AttentionSaved<T> saved{q, k, v, dout, lse, probs};
    launch_tiles<AttentionBackwardQ>(machine_, of_queries, saved, delta, dq);
    launch_tiles<AttentionBackwardKV>(machine_, of_keys, saved, delta, dk, dv);
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
