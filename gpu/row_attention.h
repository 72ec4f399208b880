// Attention with products in TF32 on tensor cores (METHODS.md 15.1): f32 under tf32, bf16 and fp8, heads of up to 128 features. A block
// owns some rows of one (sequence, head): of queries in forward and for dQ, of keys for dK and dV, so no atomics are needed. Scores,
// probabilities and results stay in registers (strip.h); tiles of q, k, v and dout pass through shared memory.
// Rows pass over their keys once; where probabilities are kept, a second time to write them.
#pragma once
#include "core/ops/attention_math.h"
#include "core/ops/small_floats.h"
#include "gpu/attention_tiles.h"
#include "gpu/strip.h"

namespace comera::gpu {

// Rows of a block, and keys that it takes at a time, for heads of up to kWidth features.
template <int kWidth>
inline constexpr int kStripSide = kWidth <= 64 ? 64 : 32;
inline constexpr int kWidestStrip = 128;
template <int kWidth>
inline constexpr int kStripThreads = 2 * kStripSide<kWidth>;  // a warp for 16 rows

// What the three kernels share. All tiles have kLine floats to a row.
template <int kWidth>
struct StripTiles {
  static constexpr int kSide = kStripSide<kWidth>, kLine = kWidth + 4, kTile = kSide * kLine;
  AttentionTiles<float> t;
  bool whole;  // of_fours(): rows of probabilities

  // tile (kRows, kWidth) = rows of a head from `first` on.
  template <int kRows, class Group>
  KERNEL void load(const Group& g, float* tile, const float* from, const HeadRows& rows, int first) const {
    load_operand<kRows, kWidth, kStripThreads<kWidth>>(g, tile, from + rows.at + first * rows.step, rows.step, rows.length - first,
                                                       rows.columns, t.by_four);
  }
  // The same rows from the strip of their block.
  template <class Strip>
  KERNEL void store(Strip& strip, float* to, const HeadRows& rows, int first) const {
    strip.each_four([&](int row, int column, int, const Four<float>& four) {
      if (first + row < rows.length && column < rows.columns)
        write_four(to + rows.at + (first + row) * rows.step, column, rows.columns, t.by_four, four);
    });
  }
  // Whether each of the rows sees each of the keys.
  KERNEL bool all_seen(int first, int rows, int begin, int keys, int n) const {
    return first + rows <= n && begin + keys <= n && (!t.pairs.causal || begin + keys <= first + 1);
  }
};

template <int kWidth>
struct StripForward : StripTiles<kWidth> {
  using Tiles = StripTiles<kWidth>;
  static constexpr int kThreads = kStripThreads<kWidth>, kBlocks = 4;
  const float *q, *k, *v;
  float *out, *lse, *probs;  // probs may be null

  static int64_t shared_count() { return 3 * Tiles::kTile; }

  // Scores of rows from `first` on and keys from `begin` on; -infinity where a row does not see a key.
  template <class Group, class Scores>
  KERNEL void scores(Group&, Scores& s, const float* tq, const float* tk, int first, int begin, int n) const {
    const auto& t = this->t;
    s.template dots<kWidth, Tiles::kLine>(tq, tk);
    const bool all = this->all_seen(first, Tiles::kSide, begin, Tiles::kSide, n);
    s.each_four([&](int row, int column, int, Four<float>& four) {
      for (int l = 0; l < 4; ++l) {
        const int i = first + row, j = begin + column + l;
        four.v[l] = all || (i < n && j < n && t.sees(i, j)) ? t.scale * four.v[l] : -static_cast<float>(INFINITY);
      }
    });
  }

  // The second pass over the keys of the rows from `first` on: top has their largest scores, inverse 1 / the sums of their exponentials.
  template <class Group, class Scores, class Rows>
  KERNEL void write_probs(Group& g, Scores& s, const float* tq, float* tk, const Pair& pair, int n, int first, const Rows& top,
                          const Rows& inverse) const {
    constexpr int kSide = Tiles::kSide;
    const int64_t longest = this->t.pairs.longest;
    for (int begin = 0, keys = this->t.seen(first, n); begin < keys; begin += kSide) {
      this->template load<kSide>(g, tk, k, this->t.keys(pair), begin);
      g.sync();
      scores(g, s, tq, tk, first, begin, n);
      s.each_four([&](int row, int column, int slot, Four<float>& four) {
        const int i = first + row, j = begin + column;
        for (float& x : four.v) x = exp_of_score(x - top[slot]) * inverse[slot];
        if (i < n && j < longest) write_four(probs + pair.probs_at + i * longest, j, longest, this->whole, four);
      });
      g.sync();
    }
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    const auto& t = this->t;
    float *tq = g.template shared<float>(), *tk = tq + Tiles::kTile, *tv = tk + Tiles::kTile;
    const DropoutDraws<float> draws(t.site);
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      t.clear_unused(g, probs, pair, n, first);
      if (first >= n) return;
      const int keys = t.seen(first, n);
      const int64_t longest = t.pairs.longest;
      typename Group::template Strip<kSide, false> s(g, kSide);
      typename Group::template Strip<kWidth, false> sum(g, kSide);
      typename Group::Rows top(g, kSide, -static_cast<float>(INFINITY)), mass(g, kSide, 0.0f), factor(g, kSide, 0.0f);
      sum.clear();
      this->template load<kSide>(g, tq, q, t.queries(pair), first);
      for (int begin = 0; begin < keys; begin += kSide) {
        this->template load<kSide>(g, tk, k, t.keys(pair), begin);
        this->template load<kSide>(g, tv, v, t.values(pair), begin);
        g.sync();
        scores(g, s, tq, tk, first, begin, n);
        s.each_row([&](int, int slot) { factor[slot] = top[slot]; });
        s.fold(top, Largest{}, [](float score, int) { return score; });
        s.each_row([&](int, int slot) { mass[slot] *= factor[slot] = exp_of_score(factor[slot] - top[slot]); });
        s.each_four([&](int, int, int slot, Four<float>& four) {
          for (float& x : four.v) x = exp_of_score(x - top[slot]);
        });
        s.fold(mass, Sum{}, [](float x, int) { return x; });
        s.each_four([&](int row, int column, int, Four<float>& four) {
          const uint32_t keeps = draws.keeps(pair.probs_at + (first + row) * longest + begin + column);
          for (int l = 0; l < 4; ++l) four.v[l] = tf32_of(draws.apply(four.v[l], keeps, l));
        });
        sum.each_four([&](int, int, int slot, Four<float>& four) {
          for (float& x : four.v) x *= factor[slot];
        });
        sum.template add<kLine>(s, tv);
        g.sync();
      }
      s.each_row(
          [&](int row, int slot) {
            if (first + row < n) lse[pair.lse_at + first + row] = top[slot] + std::log(mass[slot]);
          },
          true);
      s.each_row([&](int, int slot) { mass[slot] = 1 / mass[slot]; });
      sum.each_four([&](int, int, int slot, Four<float>& four) {
        for (float& x : four.v) x *= mass[slot];
      });
      this->store(sum, out, t.means(pair), first);
      if (probs) write_probs(g, s, tq, tk, pair, n, first, top, mass);
    });
  }
};

// Inputs of both backward kernels. probs null: computed again from q, k and lse.
struct StripSaved {
  const float *q, *k, *v, *dout, *lse, *probs;
};

// What dropout keeps of the probabilities, four neighbours of a row to a byte: (pairs, longest, fours_of(longest)). The kernel for dQ
// writes it, since the other one, whose threads have few neighbours of a row, would draw twice as often.
HD int64_t fours_of(int64_t longest) { return (longest + 3) / 4; }

// dQ, and delta (heads, T) = sum over keys of (probability after dropout) (its gradient). With p the probabilities, d those after dropout
// times their gradients: dQ = scale (d K - delta p K), of which both products need one pass over the keys.
template <int kWidth>
struct StripBackwardQ : StripTiles<kWidth> {
  using Tiles = StripTiles<kWidth>;
  static constexpr int kThreads = kStripThreads<kWidth>, kBlocks = 3, kKeys = 32;  // keys at a time
  StripSaved saved;
  float *delta, *dq;
  uint8_t* keeps;  // null without dropout

  static int64_t shared_count() { return 2 * Tiles::kTile + 2 * kKeys * Tiles::kLine; }

  // Scores of row i and keys from j on become probabilities, gradients of those after dropout d; what dropout keeps is written.
  KERNEL void weigh(const DropoutDraws<float>& draws, const Pair& pair, int n, int i, int j, bool all, float log, Four<float>& four,
                    Four<float>& gradient) const {
    const int64_t longest = this->t.pairs.longest, at = pair.probs_at + i * longest;
    if (saved.probs) {
      if (i < n && j < longest) four = read_four(saved.probs + at, j, longest, this->whole);
    } else {
      for (float& x : four.v) x = limited_probability(exp_of_score(this->t.scale * x - log));
    }
    for (int l = 0; l < 4; ++l)
      if (!all && (i >= n || j + l >= n || !this->t.sees(i, j + l))) four.v[l] = 0;
    const uint32_t bits = draws.keeps(at + j);
    if (keeps && i < n && j < longest) keeps[(pair.rows_at + i) * fours_of(longest) + j / 4] = static_cast<uint8_t>(bits);
    for (int l = 0; l < 4; ++l) gradient.v[l] *= draws.apply(four.v[l], bits, l);
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    const auto& t = this->t;
    float *tq = g.template shared<float>(), *td = tq + Tiles::kTile, *tk = td + Tiles::kTile, *tv = tk + kKeys * kLine;
    const DropoutDraws<float> draws(t.site);
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      if (first >= n) return;
      const int keys = t.seen(first, n);
      typename Group::template Strip<kKeys, false> p(g, kSide), d(g, kSide);
      typename Group::template Strip<kWidth, false> of_p(g, kSide), of_d(g, kSide);
      typename Group::Rows logs(g, kSide, 0.0f), deltas(g, kSide, 0.0f);
      of_p.clear();
      of_d.clear();
      p.each_row([&](int row, int slot) {
        if (first + row < n) logs[slot] = saved.lse[pair.lse_at + first + row];
      });
      if (!saved.probs) this->template load<kSide>(g, tq, saved.q, t.queries(pair), first);
      this->template load<kSide>(g, td, saved.dout, t.means(pair), first);
      for (int begin = 0; begin < keys; begin += kKeys) {
        this->template load<kKeys>(g, tk, saved.k, t.keys(pair), begin);
        this->template load<kKeys>(g, tv, saved.v, t.values(pair), begin);
        g.sync();
        if (!saved.probs) p.template dots<kWidth, kLine>(tq, tk);
        d.template dots<kWidth, kLine>(td, tv);
        const bool all = this->all_seen(first, kSide, begin, kKeys, n);
        p.each_four([&](int row, int column, int slot, Four<float>& four,
                        Four<float>& gradient) { weigh(draws, pair, n, first + row, begin + column, all, logs[slot], four, gradient); },
                    d);
        d.fold(deltas, Sum{}, [](float x, int) { return x; });
        p.each_four(
            [](int, int, int, Four<float>& a, Four<float>& b) {
              for (float& x : a.v) x = tf32_of(x);
              for (float& x : b.v) x = tf32_of(x);
            },
            d);
        of_p.template add<kLine>(p, tk);
        of_d.template add<kLine>(d, tk);
        g.sync();
      }
      p.each_row(
          [&](int row, int slot) {
            if (first + row < n) delta[pair.lse_at + first + row] = deltas[slot];
          },
          true);
      of_d.each_four(
          [&](int, int, int slot, Four<float>& result, const Four<float>& other) {
            for (int l = 0; l < 4; ++l) result.v[l] = t.scale * (result.v[l] - deltas[slot] * other.v[l]);
          },
          of_p);
      this->store(of_d, dq, t.queries(pair), first);
    });
  }
};

template <int kWidth>
struct StripBackwardKV : StripTiles<kWidth> {
  using Tiles = StripTiles<kWidth>;
  static constexpr int kThreads = kStripThreads<kWidth>, kBlocks = 3, kQueries = 32;  // queries at a time
  StripSaved saved;
  const float* delta;
  float *dk, *dv;
  const uint8_t* keeps;  // null without dropout

  static int64_t shared_count() { return 2 * Tiles::kTile + 2 * kQueries * Tiles::kLine + 2 * kQueries; }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    const auto& t = this->t;
    float *tk = g.template shared<float>(), *tv = tk + Tiles::kTile, *tq = tv + Tiles::kTile, *td = tq + kQueries * kLine;
    float *logs = td + kQueries * kLine, *deltas = logs + kQueries;
    const DropoutDraws<float> draws(t.site);
    t.each_item(g, [&](const Pair& first_of_values, int n, int first) {
      if (first >= n) return;
      this->template load<kSide>(g, tv, saved.v, t.values(first_of_values), first);
      typename Group::template Strip<kQueries, true> p(g, kSide), d(g, kSide);  // (keys, queries)
      typename Group::template Strip<kWidth, true> sum_k(g, kSide), sum_v(g, kSide);
      sum_v.clear();
      const int queries = t.pairs.causal ? first : 0, tiles = ceil_div(n - queries, kQueries),
                members = static_cast<int>(t.pairs.key_group());
      for (int64_t member = 0; member < t.pairs.value_group(); member += members) {
        const Pair first_of_keys = first_of_values.later(t.pairs, member);
        this->template load<kSide>(g, tk, saved.k, t.keys(first_of_keys), first);
        sum_k.clear();
        for (int tile = 0; tile < members * tiles; ++tile) {
          const Pair pair = first_of_keys.later(t.pairs, tile / tiles);
          const int query = queries + tile % tiles * kQueries;
          this->template load<kQueries>(g, tq, saved.q, t.queries(pair), query);
          this->template load<kQueries>(g, td, saved.dout, t.means(pair), query);
          for (int r = g.thread(); r < kQueries; r += g.threads()) {
            logs[r] = query + r < n ? saved.lse[pair.lse_at + query + r] : 0.0f;
            deltas[r] = query + r < n ? delta[pair.lse_at + query + r] : 0.0f;
          }
          g.sync();
          if (!saved.probs) p.template dots<kWidth, kLine>(tk, tq);
          d.template dots<kWidth, kLine>(tv, td);
          const bool all = this->all_seen(query, kQueries, first, kSide, n);
          p.each_pair(
              [&](int row, int column, float& above, float& below, float& gradient_above, float& gradient_below) {
                const int i = query + column, j = first + row;
                const int64_t longest = t.pairs.longest, at = pair.probs_at + i * longest + j;
                float of_pair[2] = {above, below};
                for (int l = 0; l < 2; ++l)
                  if (!all && (i >= n || j + l >= n || !t.sees(i, j + l)))
                    of_pair[l] = 0;
                  else
                    of_pair[l] = saved.probs ? saved.probs[at + l] : limited_probability(exp_of_score(t.scale * of_pair[l] - logs[column]));
                uint32_t bits = 3;
                if (keeps && i < n && j < longest) bits = keeps[(pair.rows_at + i) * fours_of(longest) + j / 4] >> (j & 2);
                const float dropped[2] = {draws.apply(of_pair[0], bits, 0), draws.apply(of_pair[1], bits, 1)};
                above = tf32_of(t.scale * (dropped[0] * gradient_above - of_pair[0] * deltas[column]));
                below = tf32_of(t.scale * (dropped[1] * gradient_below - of_pair[1] * deltas[column]));
                gradient_above = tf32_of(dropped[0]);
                gradient_below = tf32_of(dropped[1]);
              },
              d);
          sum_v.template add<kLine>(d, td);
          sum_k.template add<kLine>(p, tq);
          g.sync();
        }
        this->store(sum_k, dk, t.keys(first_of_keys), first);
      }
      this->store(sum_v, dv, t.values(first_of_values), first);
    });
  }
};

// The members of Body behind its tiles are `rest`.
template <template <int> class Body, int kWidth, class Machine, class... Rest>
void launch_strips(Machine& machine, AttentionTiles<float> tiles, bool whole, const Rest&... rest) {
  tiles.side = Body<kWidth>::kSide;
  LaunchShape shape{0, Body<kWidth>::kThreads, Body<kWidth>::shared_count() * static_cast<int64_t>(sizeof(float))};
  shape.blocks = std::min(tiles.items() + tiles.uncovered.items(shape.threads), kMostBlocks);
  machine.launch(shape, Body<kWidth>{{tiles, whole}, rest...});
}
template <template <int> class Body, class Machine, class... Rest>
void launch_strips(Machine& machine, const AttentionTiles<float>& tiles, const Rest&... rest) {
  if (tiles.pairs.widest() <= 32)
    launch_strips<Body, 32>(machine, tiles, rest...);
  else if (tiles.pairs.widest() <= 64)
    launch_strips<Body, 64>(machine, tiles, rest...);
  else
    launch_strips<Body, kWidestStrip>(machine, tiles, rest...);
}

}  // namespace comera::gpu
