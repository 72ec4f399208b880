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

// Backward of one chunk of tokens after the other; each step ends before the next begins.
class BackwardTiles {
 public:
  BackwardTiles(ThreadPool& pool, Workspace::Call& memory, const Sides& sides, const op::WaistActivationBackward& args)
      : pool_(pool),
        sides_(sides),
        args_(args),
        r_(memory.take<float>(sides.panels * of_a_)),
        r_back_(memory.take<float>(sides.panels * to_a_)),
        l_back_(memory.take<float>(sides.panels * of_b_)),
        t_(memory.take<float>(chunk_ * sides.a_padded)),
        u_(memory.take<float>(chunk_ * sides.b_padded)),
        dt_(memory.take<float>(groups_ * chunk_ * sides.a_padded)),
        dr_(memory.take<float>(sides.panels * to_a_)),
        dl_(memory.take<float>(sides.panels * to_b_)) {}

  void run() {
    pack_weights();
    by_kind(args_.kind, [&](auto f) {
      for (int64_t start = 0; start < sides_.tokens; start += chunk_) {
        const int64_t count = std::min(chunk_, sides_.tokens - start);
        pack_tokens(start, count);
        pool_.parallel_for(groups_, 1, [&](int64_t begin, int64_t end) {
          for (int64_t group = begin; group < end; ++group) take_group<decltype(f)>(group, start, count);
        });
        add_groups(start, count);
      }
    });
    store_weights();
  }

 private:
  void pack_weights() {
    each_panel(pool_, sides_, [&](int64_t panel, int64_t first, int64_t count) {
      pack_columns(r_ + panel * of_a_, {args_.r.data<float>(), args_.r.ld, 1}, sides_.a, first, count);
      pack_rows(r_back_ + panel * to_a_, {args_.r.data<float>(), 1, args_.r.ld}, sides_.a_padded, sides_.a, first, count);
      pack_columns(l_back_ + panel * of_b_, {args_.l.data<float>(), 1, args_.l.ld}, sides_.b, first, count);
    });
  }

  void pack_tokens(int64_t start, int64_t count) {
    const Short of_t{args_.t.data<float>(), args_.t.ld, 1}, of_u{args_.dy.data<float>(), args_.dy.ld, 1};
    pool_.parallel_for(ceil_div(count, kTokens), 2, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t token = tile * kTokens, rows = std::min(kTokens, count - token);
        pack(t_ + token * sides_.a_padded, sides_.a_padded, of_t, start + token, rows, 0, sides_.a);
        pack(u_ + token * sides_.b_padded, sides_.b_padded, of_u, start + token, rows, 0, sides_.b);
      }
    });
  }

  // The group's panels: their part of dt, and their dr and dl, to which each tile of tokens adds.
  template <class F>
  void take_group(int64_t group, int64_t start, int64_t count) const {
    alignas(64) float h[kTokens * kColumns], d[kTokens * kColumns];
    const int64_t a_padded = sides_.a_padded, b_padded = sides_.b_padded;
    const int64_t first = sides_.panels * group / groups_, last = sides_.panels * (group + 1) / groups_;
    for (int64_t panel = first; panel < last; ++panel)
      for (int64_t token = 0; token < count; token += kTokens) {
        const int64_t rows = std::min(kTokens, count - token);
        const float *own_t = t_ + token * a_padded, *own_u = u_ + token * b_padded;
        product({own_t, a_padded, 1, r_ + panel * of_a_, kColumns, sides_.a}, rows, kPanelVectors, h, kColumns, false);
        product({own_u, b_padded, 1, l_back_ + panel * of_b_, kColumns, sides_.b}, rows, kPanelVectors, d, kColumns, false);
#pragma GCC ivdep
        for (int64_t i = 0; i < rows * kColumns; ++i) {
          const float x = h[i], y = F::forward(x);
          h[i] = y;
          d[i] = F::backward(d[i], std::is_same_v<F, Tanh> ? y : x);  // whose slope follows from its value
        }
        product({d, kColumns, 1, r_back_ + panel * to_a_, a_padded, kColumns}, rows, a_padded / kLanes,
                dt_ + (group * chunk_ + token) * a_padded, a_padded, panel > first);
        const bool add = start + token > 0;
        product({h, 1, kColumns, own_u, b_padded, rows}, kColumns, b_padded / kLanes, dl_ + panel * to_b_, b_padded, add);
        product({d, 1, kColumns, own_t, a_padded, rows}, kColumns, a_padded / kLanes, dr_ + panel * to_a_, a_padded, add);
      }
  }

  void add_groups(int64_t start, int64_t count) {
    pool_.parallel_for(count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        float *to = args_.dt.data<float>() + (start + token) * args_.dt.ld, *sum = dt_ + token * sides_.a_padded;
        for (int64_t group = 1; group < groups_; ++group) {
          const float* more = dt_ + (group * chunk_ + token) * sides_.a_padded;
          for (int64_t j = 0; j < sides_.a_padded; ++j) sum[j] += more[j];
        }
        std::copy(sum, sum + args_.dt.cols, to);
      }
    });
  }

  void store_weights() {
    each_panel(pool_, sides_, [&](int64_t panel, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const float *from = dl_ + panel * to_b_ + i * sides_.b_padded, *across = dr_ + panel * to_a_ + i * sides_.a_padded;
        std::copy(from, from + sides_.b, args_.dl.data<float>() + (first + i) * args_.dl.ld);
        for (int64_t j = 0; j < sides_.a; ++j) args_.dr.data<float>()[j * args_.dr.ld + first + i] = across[j];
      }
    });
  }

  ThreadPool& pool_;
  const Sides& sides_;
  const op::WaistActivationBackward& args_;
  const int64_t groups_ = std::min(kGroups, sides_.panels), chunk_ = std::min(kChunk, sides_.tokens);
  // Floats of a packed panel.
  const int64_t of_a_ = kColumns * sides_.a, of_b_ = kColumns * sides_.b;
  const int64_t to_a_ = kColumns * sides_.a_padded, to_b_ = kColumns * sides_.b_padded;
  float *r_, *r_back_, *l_back_;  // weights by panels: (A, panel), (panel, A), (B, panel)
  float *t_, *u_;                 // t and dy of the chunk, padded
  float *dt_, *dr_, *dl_;         // dt by groups, dr and dl by panels
};

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
  BackwardTiles tiles(pool, memory, sides, args);
  if (!dry) tiles.run();
  return true;
}

}  // namespace comera
