// A tile is 48 tokens x a panel of 48 columns (32 with AVX2) of the wide side O. Operands are packed by panels once a call. Sums over O and
// over tokens are made in one order, whatever the number of threads: threads share tokens in forward, and in backward groups of panels,
// whose sums for dt are added in their order.
#include "core/cpu/waist_tiles.h"

#include <algorithm>
#include <type_traits>

#include "core/base/rounding.h"
#include "core/cpu/register_tile.h"
#include "core/cpu/skinny_gemm.h"
#include "core/ops/pointwise_math.h"

namespace comera {
namespace {

constexpr int kPanelVectors = kMaxVectors > 2 ? 3 : kMaxVectors;
constexpr int64_t kColumns = kPanelVectors * kLanes;  // of a panel
constexpr int64_t kTokens = 48;                       // of a tile: a multiple of every register tile's height
constexpr int64_t kChunk = 512;                       // tokens whose sums for dt are held for each group
constexpr int64_t kGroups = 16;                       // of panels
constexpr int64_t kShortest = 256;                    // wide side from which packing pays

// out (m, vectors) = sum over p < k of a(i, p) b(p), or += where `add`.
void product(Tile tile, int64_t m, int64_t vectors, float* out, int64_t ldo, bool add) {
  const float *a = tile.a, *b = tile.b;
  for (int64_t v = 0; v < vectors; v += kMaxVectors) {
    const auto width = static_cast<int>(std::min<int64_t>(kMaxVectors, vectors - v));
    const int64_t step = rows_of(width);
    tile.b = b + v * kLanes;
    for (int64_t row = 0; row < m; row += step) {
      tile.a = a + row * tile.a_row;
      kTable.at[width][std::min(step, m - row)](tile, out + row * ldo + v * kLanes, ldo, add);
    }
  }
}

struct Sides {
  const int64_t tokens, a, wide, b;
  const int64_t a_padded = round_up(a, kLanes), b_padded = round_up(b, kLanes), panels = ceil_div(wide, kColumns);

  bool fit() const { return kUsable && tokens > 0 && wide >= kShortest && std::min(a, b) > 0 && std::max(a, b) <= kSkinny; }
};

// A panel's columns of r (A, O) as (A, panel), its rows of l (O, B) or columns of r as (panel, width): element (p, j) of `from`, p along O.
void pack_columns(float* to, const Short& from, int64_t depth, int64_t first, int64_t count) {
  pack(to, kColumns, from, 0, depth, first, count);
}
void pack_rows(float* to, const Short& from, int64_t width, int64_t side, int64_t first, int64_t count) {
  pack(to, width, from, first, count, 0, side);
  std::fill(to + count * width, to + kColumns * width, 0.0f);
}

// body(panel, its first column, its columns) for all panels.
template <class Body>
void each_panel(ThreadPool& pool, const Sides& sides, const Body& body) {
  pool.parallel_for(sides.panels, 2, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) body(panel, panel * kColumns, std::min(kColumns, sides.wide - panel * kColumns));
  });
}

}  // namespace

bool waist_tiles(ThreadPool& pool, Workspace& workspace, bool dry, const op::WaistActivation& args) {
  const Sides sides{args.y.rows, args.r.rows, args.r.cols, args.l.cols};
  if (!sides.fit()) return false;
  Workspace::Call memory(workspace, dry);
  const int64_t r_panel = sides.a * kColumns, l_panel = kColumns * sides.b_padded;
  float *r = memory.take<float>(sides.panels * r_panel), *l = memory.take<float>(sides.panels * l_panel);
  if (dry) return true;
  each_panel(pool, sides, [&](int64_t panel, int64_t first, int64_t count) {
    pack_columns(r + panel * r_panel, {args.r.data<float>(), args.r.ld, 1}, sides.a, first, count);
    pack_rows(l + panel * l_panel, {args.l.data<float>(), args.l.ld, 1}, sides.b_padded, sides.b, first, count);
  });
  const float *t = args.t.data<float>(), *bias = args.bias ? args.bias.data<float>() : nullptr;
  float* y = args.y.data<float>();
  by_kind(args.kind, [&](auto f) {
    pool.parallel_for(ceil_div(sides.tokens, kTokens), 1, [&](int64_t begin, int64_t end) {
      alignas(64) float h[kTokens * kColumns], sum[kTokens * kSkinny];
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t token = tile * kTokens, rows = std::min(kTokens, sides.tokens - token);
        for (int64_t panel = 0; panel < sides.panels; ++panel) {
          product({t + token * args.t.ld, args.t.ld, 1, r + panel * r_panel, kColumns, sides.a}, rows, kPanelVectors, h, kColumns, false);
#pragma GCC ivdep
          for (int64_t i = 0; i < rows * kColumns; ++i) h[i] = decltype(f)::forward(h[i]);
          product({h, kColumns, 1, l + panel * l_panel, sides.b_padded, kColumns}, rows, sides.b_padded / kLanes, sum, sides.b_padded,
                  panel > 0);
        }
        for (int64_t row = 0; row < rows; ++row) {
          float* to = y + (token + row) * args.y.ld;
          const float* from = sum + row * sides.b_padded;
          for (int64_t j = 0; j < sides.b; ++j) to[j] = bias ? from[j] + bias[j] : from[j];
        }
      }
    });
  });
  return true;
}

bool waist_tiles(ThreadPool& pool, Workspace& workspace, bool dry, const op::WaistActivationBackward& args) {
  const Sides sides{args.dy.rows, args.r.rows, args.r.cols, args.l.cols};
  if (!sides.fit()) return false;
  Workspace::Call memory(workspace, dry);
  const int64_t groups = std::min(kGroups, sides.panels), chunk = std::min(kChunk, sides.tokens);
  const int64_t to_a = kColumns * sides.a_padded, to_b = kColumns * sides.b_padded, of_a = kColumns * sides.a, of_b = kColumns * sides.b;
  float *r = memory.take<float>(sides.panels * of_a), *r_back = memory.take<float>(sides.panels * to_a),
        *l_back = memory.take<float>(sides.panels * of_b), *t = memory.take<float>(chunk * sides.a_padded),
        *u = memory.take<float>(chunk * sides.b_padded), *dt = memory.take<float>(groups * chunk * sides.a_padded),
        *dr = memory.take<float>(sides.panels * to_a), *dl = memory.take<float>(sides.panels * to_b);
  if (dry) return true;
  each_panel(pool, sides, [&](int64_t panel, int64_t first, int64_t count) {
    pack_columns(r + panel * of_a, {args.r.data<float>(), args.r.ld, 1}, sides.a, first, count);
    pack_rows(r_back + panel * to_a, {args.r.data<float>(), 1, args.r.ld}, sides.a_padded, sides.a, first, count);
    pack_columns(l_back + panel * of_b, {args.l.data<float>(), 1, args.l.ld}, sides.b, first, count);
  });
  const Short of_t{args.t.data<float>(), args.t.ld, 1}, of_u{args.dy.data<float>(), args.dy.ld, 1};
  by_kind(args.kind, [&](auto f) {
    using F = decltype(f);
    for (int64_t start = 0; start < sides.tokens; start += chunk) {
      const int64_t count = std::min(chunk, sides.tokens - start);
      pool.parallel_for(ceil_div(count, kTokens), 2, [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
          const int64_t token = tile * kTokens, rows = std::min(kTokens, count - token);
          pack(t + token * sides.a_padded, sides.a_padded, of_t, start + token, rows, 0, sides.a);
          pack(u + token * sides.b_padded, sides.b_padded, of_u, start + token, rows, 0, sides.b);
        }
      });
      pool.parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
        alignas(64) float h[kTokens * kColumns], d[kTokens * kColumns];
        for (int64_t group = begin; group < end; ++group) {
          const int64_t first = sides.panels * group / groups, last = sides.panels * (group + 1) / groups;
          for (int64_t panel = first; panel < last; ++panel)
            for (int64_t token = 0; token < count; token += kTokens) {
              const int64_t rows = std::min(kTokens, count - token);
              const float *own_t = t + token * sides.a_padded, *own_u = u + token * sides.b_padded;
              product({own_t, sides.a_padded, 1, r + panel * of_a, kColumns, sides.a}, rows, kPanelVectors, h, kColumns, false);
              product({own_u, sides.b_padded, 1, l_back + panel * of_b, kColumns, sides.b}, rows, kPanelVectors, d, kColumns, false);
#pragma GCC ivdep
              for (int64_t i = 0; i < rows * kColumns; ++i) {
                const float x = h[i], y = F::forward(x);
                h[i] = y;
                d[i] = F::backward(d[i], std::is_same_v<F, Tanh> ? y : x);  // whose slope follows from its value
              }
              product({d, kColumns, 1, r_back + panel * to_a, sides.a_padded, kColumns}, rows, sides.a_padded / kLanes,
                      dt + (group * chunk + token) * sides.a_padded, sides.a_padded, panel > first);
              const bool add = start + token > 0;
              product({h, 1, kColumns, own_u, sides.b_padded, rows}, kColumns, sides.b_padded / kLanes, dl + panel * to_b, sides.b_padded,
                      add);
              product({d, 1, kColumns, own_t, sides.a_padded, rows}, kColumns, sides.a_padded / kLanes, dr + panel * to_a, sides.a_padded,
                      add);
            }
        }
      });
      pool.parallel_for(count, 64, [&](int64_t begin, int64_t end) {
        for (int64_t token = begin; token < end; ++token) {
          float *to = args.dt.data<float>() + (start + token) * args.dt.ld, *sum = dt + token * sides.a_padded;
          for (int64_t group = 1; group < groups; ++group) {
            const float* more = dt + (group * chunk + token) * sides.a_padded;
            for (int64_t j = 0; j < sides.a_padded; ++j) sum[j] += more[j];
          }
          std::copy(sum, sum + args.dt.cols, to);
        }
      });
    }
  });
  each_panel(pool, sides, [&](int64_t panel, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float *from = dl + panel * to_b + i * sides.b_padded, *across = dr + panel * to_a + i * sides.a_padded;
      std::copy(from, from + sides.b, args.dl.data<float>() + (first + i) * args.dl.ld);
      for (int64_t j = 0; j < sides.a; ++j) args.dr.data<float>()[j * args.dr.ld + first + i] = across[j];
    }
  });
  return true;
}

}  // namespace comera
