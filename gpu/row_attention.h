// Attention with products in TF32 on tensor cores (METHODS.md 15.1): f32 under tf32, bf16 and fp8, heads of up to 128 features. A block
// owns some rows of one (sequence, head): of queries in forward and for dQ, of keys for dK and dV, so no atomics are needed. Scores,
// probabilities and results stay in registers (strip.h); tiles of q, k, v and dout pass through shared memory. Rows pass over their keys
// twice: for the softmax's maximum and sum, or for delta, then for the result.
#pragma once
#include "core/ops/attention_math.h"
#include "gpu/attention_tiles.h"
#include "gpu/strip.h"

namespace comera::gpu {

// Rows of a block, and keys that it takes at a time, for heads of up to kWidth features.
template <int kWidth>
inline constexpr int kStripSide = kWidth <= 64 ? 64 : 32;
inline constexpr int kWidestStrip = 128;

template <class Strip>
KERNEL void store_strip(Strip& strip, const AttentionTiles<float>& t, float* rows, int64_t step, int count) {
  const int wide = static_cast<int>(t.pairs.head_width);
  strip.each_four([&](int row, int column, int, const Four<float>& four) {
    if (row < count && column < wide) write_four(rows + row * step, column, wide, t.by_four, four);
  });
}

HD void round_four(Four<float>& four) {
  for (float& x : four.v) x = tf32_of(x);
}

template <int kWidth>
struct StripForward {
  static constexpr int kSide = kStripSide<kWidth>, kLine = kWidth + 4;
  AttentionTiles<float> t;
  bool whole;  // of_fours(): rows of probabilities
  const float *q, *k, *v;
  float *out, *lse, *probs;  // probs may be null

  static int64_t shared_count() { return 3 * kSide * kLine; }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    float *tq = g.template shared<float>(), *tk = tq + kSide * kLine, *tv = tk + kSide * kLine;
    const DropoutWords<float> words(t.site);
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      t.clear_unused(g, probs, pair, n, first);
      if (first >= n) return;
      const int keys = t.seen(first, n);
      typename Group::template Strip<kSide, false> s(g, kSide);
      typename Group::Rows top(g, kSide, -static_cast<float>(INFINITY)), mass(g, kSide, 0.0f);
      const auto scores = [&](int begin) {
        t.load_keys(g, tk, k, pair, begin);
        g.sync();
        s.template dots<kWidth, kLine>(tq, tk);
        s.each_four([&](int row, int column, int, Four<float>& four) {
          for (int l = 0; l < 4; ++l) {
            const int i = first + row, j = begin + column + l;
            four.v[l] = i < n && j < n && t.sees(i, j) ? t.scale * four.v[l] : -static_cast<float>(INFINITY);
          }
        });
      };
      t.load(g, tq, q, pair, first);
      for (int begin = 0; begin < keys; begin += kSide) {
        scores(begin);
        const auto before = top;
        s.fold(top, Largest{}, [](float score, int) { return score; });
        s.each_row([&](int, int slot) { mass[slot] *= fast::exp(before[slot] - top[slot]); });
        s.fold(mass, Sum{}, [&](float score, int slot) { return fast::exp(score - top[slot]); });
        g.sync();
      }
      s.each_row(
          [&](int row, int slot) {
            if (first + row < n) lse[pair.lse_at + first + row] = top[slot] + std::log(mass[slot]);
          },
          true);
      s.each_row([&](int, int slot) { mass[slot] = 1 / mass[slot]; });
      typename Group::template Strip<kWidth, false> sum(g, kSide);
      sum.clear();
      for (int begin = 0; begin < keys; begin += kSide) {
        t.load_keys(g, tv, v, pair, begin);
        if (keys > kSide)  // the scores of another tile are there
          scores(begin);
        else
          g.sync();
        s.each_four([&](int row, int column, int slot, Four<float>& four) {
          const int64_t i = first + row, j = begin + column, longest = t.pairs.longest, at = pair.probs_at + i * longest;
          for (float& p : four.v) p = i < n ? fast::exp(p - top[slot]) * mass[slot] : 0.0f;
          if (probs && i < n && j < longest) write_four(probs + at, j, longest, whole, four);
          words.apply(four.v, at + j);
          round_four(four);
        });
        sum.template add<kLine>(s, tv);
        g.sync();
      }
      store_strip(sum, t, out + pair.at + first * t.pairs.width, t.pairs.width, n - first);
    });
  }
};

// Inputs of both backward kernels.
struct StripSaved {
  const float *q, *k, *v, *dout, *lse, *probs;  // probs null: computed again from q, k and lse
  bool whole;                                   // of_fours(): rows of probabilities

  KERNEL float again(const AttentionTiles<float>& t, float dot, float lse_of_row) const {
    return probability_again(t.scale * dot, lse_of_row);
  }
};

// dQ, and delta (heads, T) = sum over keys of (probability after dropout) (its gradient).
template <int kWidth>
struct StripBackwardQ {
  static constexpr int kSide = kStripSide<kWidth>, kLine = kWidth + 4;
  AttentionTiles<float> t;
  StripSaved saved;
  float *delta, *dq;

  static int64_t shared_count() { return 4 * kSide * kLine; }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kTile = kSide * kLine;
    float *tq = g.template shared<float>(), *td = tq + kTile, *tk = td + kTile, *tv = tk + kTile;
    const DropoutWords<float> words(t.site);
    t.each_item(g, [&](const Pair& pair, int n, int first) {
      if (first >= n) return;
      const int keys = t.seen(first, n);
      typename Group::template Strip<kSide, false> s(g, kSide), dp(g, kSide);
      typename Group::Rows logs(g, kSide, 0.0f), deltas(g, kSide, 0.0f);
      s.each_row([&](int row, int slot) {
        if (first + row < n) logs[slot] = saved.lse[pair.lse_at + first + row];
      });
      // s = probability, dp = (probability after dropout) (its gradient).
      const auto entries = [&](int begin) {
        t.load_keys(g, tk, saved.k, pair, begin);
        t.load_keys(g, tv, saved.v, pair, begin);
        g.sync();
        if (!saved.probs) s.template dots<kWidth, kLine>(tq, tk);
        dp.template dots<kWidth, kLine>(td, tv);
        s.each_four(
            [&](int row, int column, int slot, Four<float>& p, Four<float>& gradient) {
              const int i = first + row, j = begin + column;
              const int64_t longest = t.pairs.longest, at = pair.probs_at + i * longest;
              if (saved.probs && i < n && j < longest) p = read_four(saved.probs + at, j, longest, saved.whole);
              for (int l = 0; l < 4; ++l)
                if (i >= n || j + l >= n || !t.sees(i, j + l))
                  p.v[l] = 0;
                else if (!saved.probs)
                  p.v[l] = saved.again(t, p.v[l], logs[slot]);
              Four<float> dropped = p;
              words.apply(dropped.v, at + j);
              for (int l = 0; l < 4; ++l) gradient.v[l] *= dropped.v[l];
            },
            dp);
      };
      if (!saved.probs) t.load(g, tq, saved.q, pair, first);
      t.load(g, td, saved.dout, pair, first);
      for (int begin = 0; begin < keys; begin += kSide) {
        entries(begin);
        dp.fold(deltas, Sum{}, [](float term, int) { return term; });
        if (keys > kSide) g.sync();
      }
      s.each_row(
          [&](int row, int slot) {
            if (first + row < n) delta[pair.lse_at + first + row] = deltas[slot];
          },
          true);
      typename Group::template Strip<kWidth, false> sum(g, kSide);
      sum.clear();
      for (int begin = 0; begin < keys; begin += kSide) {
        if (keys > kSide) entries(begin);  // those of another tile are there
        s.each_four(
            [&](int, int, int slot, Four<float>& p, const Four<float>& gradient) {
              for (int l = 0; l < 4; ++l) p.v[l] = t.scale * (gradient.v[l] - p.v[l] * deltas[slot]);
              round_four(p);
            },
            dp);
        sum.template add<kLine>(s, tk);
        g.sync();
      }
      store_strip(sum, t, dq + pair.at + first * t.pairs.width, t.pairs.width, n - first);
    });
  }
};

template <int kWidth>
struct StripBackwardKV {
  static constexpr int kSide = kStripSide<kWidth>, kLine = kWidth + 4, kQueries = 32;
  AttentionTiles<float> t;
  StripSaved saved;
  const float* delta;
  float *dk, *dv;

  static int64_t shared_count() { return 2 * (kSide + kQueries) * kLine + 2 * kQueries; }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    float *tk = g.template shared<float>(), *tv = tk + kSide * kLine, *tq = tv + kSide * kLine, *td = tq + kQueries * kLine;
    float *logs = td + kQueries * kLine, *deltas = logs + kQueries;
    const DropoutWords<float> words(t.site);
    t.each_item(g, [&](const Pair& first_of_group, int n, int first) {
      if (first >= n) return;
      t.load_keys(g, tk, saved.k, first_of_group, first);
      t.load_keys(g, tv, saved.v, first_of_group, first);
      typename Group::template Strip<kQueries, true> s(g, kSide), dp(g, kSide);  // (keys, queries)
      typename Group::template Strip<kWidth, true> sum_k(g, kSide), sum_v(g, kSide);
      sum_k.clear();
      sum_v.clear();
      const int queries = t.pairs.causal ? first : 0, tiles = ceil_div(n - queries, kQueries), members = static_cast<int>(t.pairs.group());
      for (int tile = 0; tile < members * tiles; ++tile) {
        const Pair pair = first_of_group.later(t.pairs, tile / tiles);
        const int query = queries + tile % tiles * kQueries;
        t.load(g, tq, saved.q, pair, query, kQueries);
        t.load(g, td, saved.dout, pair, query, kQueries);
        for (int r = g.thread(); r < kQueries; r += g.threads()) {
          logs[r] = query + r < n ? saved.lse[pair.lse_at + query + r] : 0.0f;
          deltas[r] = query + r < n ? delta[pair.lse_at + query + r] : 0.0f;
        }
        g.sync();
        if (!saved.probs) s.template dots<kWidth, kLine>(tk, tq);
        dp.template dots<kWidth, kLine>(tv, td);
        s.each_pair(
            [&](int row, int column, float& above, float& below, float& gradient_above, float& gradient_below) {
              const int i = query + column, j = first + row;
              const int64_t at = pair.probs_at + i * t.pairs.longest + j;
              float p[2] = {above, below};
              for (int l = 0; l < 2; ++l)
                p[l] = i >= n || j + l >= n || !t.sees(i, j + l) ? 0.0f
                       : saved.probs                             ? saved.probs[at + l]
                                                                 : saved.again(t, p[l], logs[column]);
              float dropped[2] = {p[0], p[1]};
              words.apply(dropped, at);
              above = tf32_of(t.scale * (dropped[0] * gradient_above - p[0] * deltas[column]));
              below = tf32_of(t.scale * (dropped[1] * gradient_below - p[1] * deltas[column]));
              gradient_above = tf32_of(dropped[0]);
              gradient_below = tf32_of(dropped[1]);
            },
            dp);
        sum_v.template add<kLine>(dp, td);
        sum_k.template add<kLine>(s, tq);
        g.sync();
      }
      const int64_t step = t.pairs.key_width, at = first_of_group.key_at + first * step;
      store_strip(sum_k, t, dk + at, step, n - first);
      store_strip(sum_v, t, dv + at, step, n - first);
    });
  }
};

// The members of Body behind its tiles are `rest`.
template <template <int> class Body, int kWidth, class Machine, class... Rest>
void launch_strips(Machine& machine, AttentionTiles<float> tiles, const Rest&... rest) {
  tiles.side = Body<kWidth>::kSide;
  tiles.padded = kWidth;
  tiles.rounded = true;
  LaunchShape shape{0, 2 * Body<kWidth>::kSide, Body<kWidth>::shared_count() * static_cast<int64_t>(sizeof(float))};  // a warp for 16 rows
  shape.blocks = std::min(tiles.items() + tiles.uncovered.items(shape.threads), kMostBlocks);
  machine.launch(shape, Body<kWidth>{tiles, rest...});
}
template <template <int> class Body, class Machine, class... Rest>
void launch_strips(Machine& machine, const AttentionTiles<float>& tiles, const Rest&... rest) {
  if (tiles.pairs.head_width <= 32)
    launch_strips<Body, 32>(machine, tiles, rest...);
  else if (tiles.pairs.head_width <= 64)
    launch_strips<Body, 64>(machine, tiles, rest...);
  else
    launch_strips<Body, kWidestStrip>(machine, tiles, rest...);
}

}  // namespace comera::gpu
