// A tile is 48 tokens x a panel of 48 columns (32 with AVX2) of the wide side O. Operands are packed by panels once a call. Sums over O and
// over tokens are made in one order, whatever the number of threads: threads share tokens in forward, and in backward groups of panels,
// whose sums for dt are added in their order.
#include "core/cpu/waist_tiles.h"

#include <algorithm>
#include <optional>
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
  const int64_t tokens, a, of_gate, wide, b;  // of_gate: A' of the gate, 0 without one
  const int64_t b_padded = round_up(b, kLanes), panels = ceil_div(wide, kColumns);

  bool fit() const { return kUsable && tokens > 0 && wide >= kShortest && std::min(a, b) > 0 && std::max({a, of_gate, b}) <= kSkinny; }
};
template <class Args>
Sides sides_of(const Args& args, const Mat& y) {
  return {y.rows, args.r.rows, args.gate ? args.gate->r.rows : 0, args.r.cols, args.l.cols};
}

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

// Forward's r (A, O) by panels.
struct ForwardInput {
  ForwardInput(Workspace::Call& memory, const Sides& sides, const Mat& t, const Mat& r)
      : t(t), r(r), of_panel(kColumns * r.rows), packed(memory.take<float>(sides.panels * of_panel)) {}

  void pack_panel(int64_t panel, int64_t first, int64_t count) const {
    pack_columns(packed + panel * of_panel, {r.data<float>(), r.ld, 1}, r.rows, first, count);
  }
  // h (rows, panel) = t r.
  void multiply(float* h, int64_t token, int64_t rows, int64_t panel) const {
    product({t.data<float>() + token * t.ld, t.ld, 1, packed + panel * of_panel, kColumns, r.rows}, rows, kPanelVectors, h, kColumns,
            false);
  }

  const Mat t, r;
  const int64_t of_panel;
  float* const packed;
};

// Backward's t (T, A) and r (A, O), and their gradients.
class BackwardInput {
 public:
  BackwardInput(Workspace::Call& memory, const Sides& sides, int64_t chunk, int64_t groups, const Mat& dt, const Mat& dr, const Mat& t,
                const Mat& r)
      : dt_(dt),
        dr_(dr),
        t_(t),
        r_(r),
        chunk_(chunk),
        groups_(groups),
        columns_(memory.take<float>(sides.panels * of_)),
        rows_(memory.take<float>(sides.panels * to_)),
        tokens_(memory.take<float>(chunk * padded_)),
        sums_(memory.take<float>(groups * chunk * padded_)),
        gradient_(memory.take<float>(sides.panels * to_)) {}

  void pack_panel(int64_t panel, int64_t first, int64_t count) const {
    pack_columns(columns_ + panel * of_, {r_.data<float>(), r_.ld, 1}, r_.rows, first, count);
    pack_rows(rows_ + panel * to_, {r_.data<float>(), 1, r_.ld}, padded_, r_.rows, first, count);
  }
  void pack_tokens(int64_t start, int64_t token, int64_t rows) const {
    pack(tokens_ + token * padded_, padded_, {t_.data<float>(), t_.ld, 1}, start + token, rows, 0, r_.rows);
  }
  // h (rows, panel) = t r.
  void multiply(float* h, int64_t token, int64_t rows, int64_t panel) const {
    product({tokens_ + token * padded_, padded_, 1, columns_ + panel * of_, kColumns, r_.rows}, rows, kPanelVectors, h, kColumns, false);
  }
  // Adds dh r^T to dt of the group and t^T dh to dr; writes them at the group's first panel, and at the first tile of tokens.
  struct Begins {
    bool group, tokens;
  };
  void pass_on(const float* dh, int64_t group, int64_t token, int64_t rows, int64_t panel, Begins begins) const {
    product({dh, kColumns, 1, rows_ + panel * to_, padded_, kColumns}, rows, padded_ / kLanes, sums_ + (group * chunk_ + token) * padded_,
            padded_, !begins.group);
    product({dh, 1, kColumns, tokens_ + token * padded_, padded_, rows}, kColumns, padded_ / kLanes, gradient_ + panel * to_, padded_,
            !begins.tokens);
  }
  // dt of a token: the sum over groups, in their order.
  void store_token(int64_t start, int64_t token) const {
    float *to = dt_.data<float>() + (start + token) * dt_.ld, *sum = sums_ + token * padded_;
    for (int64_t group = 1; group < groups_; ++group) {
      const float* more = sums_ + (group * chunk_ + token) * padded_;
      for (int64_t j = 0; j < padded_; ++j) sum[j] += more[j];
    }
    std::copy(sum, sum + dt_.cols, to);
  }
  void store_panel(int64_t panel, int64_t first, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const float* across = gradient_ + panel * to_ + i * padded_;
      for (int64_t j = 0; j < r_.rows; ++j) dr_.data<float>()[j * dr_.ld + first + i] = across[j];
    }
  }

 private:
  const Mat dt_, dr_, t_, r_;
  const int64_t chunk_, groups_;
  const int64_t padded_ = round_up(r_.rows, kLanes), of_ = kColumns * r_.rows, to_ = kColumns * padded_;  // floats of a packed panel
  float *const columns_, *const rows_;   // r by panels: (A, panel), (panel, A)
  float* const tokens_;                  // t of the chunk, padded
  float *const sums_, *const gradient_;  // dt by groups, dr by panels
};

// Backward of one chunk of tokens after the other; each step ends before the next begins.
class BackwardTiles {
 public:
  BackwardTiles(ThreadPool& pool, Workspace::Call& memory, const Sides& sides, const op::WaistActivationBackward& args)
      : pool_(pool),
        sides_(sides),
        args_(args),
        input_(memory, sides, chunk_, groups_, args.dt, args.dr, args.t, args.r),
        l_back_(memory.take<float>(sides.panels * of_b_)),
        u_(memory.take<float>(chunk_ * sides.b_padded)),
        dl_(memory.take<float>(sides.panels * to_b_)) {
    if (args.gate) gate_.emplace(memory, sides, chunk_, groups_, args.gate->dt, args.gate->dr, args.gate->t, args.gate->r);
  }

  void run() {
    pack_weights();
    by_kind(args_.kind, [&](auto f) {
      for (int64_t start = 0; start < sides_.tokens; start += chunk_) {
        const int64_t count = std::min(chunk_, sides_.tokens - start);
        pack_tokens(start, count);
        pool_.parallel_for(groups_, 1, [&](int64_t begin, int64_t end) {
          for (int64_t group = begin; group < end; ++group) take_group<decltype(f)>(group, start, count);
        });
        pool_.parallel_for(count, 64, [&](int64_t begin, int64_t end) {
          for (int64_t token = begin; token < end; ++token)
            each_input([&](const BackwardInput& input) { input.store_token(start, token); });
        });
      }
    });
    store_weights();
  }

 private:
  template <class Body>
  void each_input(const Body& body) const {
    body(input_);
    if (gate_) body(*gate_);
  }

  void pack_weights() {
    each_panel(pool_, sides_, [&](int64_t panel, int64_t first, int64_t count) {
      each_input([&](const BackwardInput& input) { input.pack_panel(panel, first, count); });
      pack_columns(l_back_ + panel * of_b_, {args_.l.data<float>(), 1, args_.l.ld}, sides_.b, first, count);
    });
  }

  void pack_tokens(int64_t start, int64_t count) {
    pool_.parallel_for(ceil_div(count, kTokens), 2, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t token = tile * kTokens, rows = std::min(kTokens, count - token);
        each_input([&](const BackwardInput& input) { input.pack_tokens(start, token, rows); });
        pack(u_ + token * sides_.b_padded, sides_.b_padded, {args_.dy.data<float>(), args_.dy.ld, 1}, start + token, rows, 0, sides_.b);
      }
    });
  }

  // The group's panels: their part of dt, and their dr and dl, to which each tile of tokens adds.
  template <class F>
  void take_group(int64_t group, int64_t start, int64_t count) const {
    alignas(64) float h[kTokens * kColumns], d[kTokens * kColumns], g[kTokens * kColumns];
    const int64_t b_padded = sides_.b_padded;
    const int64_t first = sides_.panels * group / groups_, last = sides_.panels * (group + 1) / groups_;
    for (int64_t panel = first; panel < last; ++panel)
      for (int64_t token = 0; token < count; token += kTokens) {
        const int64_t rows = std::min(kTokens, count - token);
        const BackwardInput::Begins begins{panel == first, start + token == 0};
        const float* own_u = u_ + token * b_padded;
        input_.multiply(h, token, rows, panel);
        if (gate_) gate_->multiply(g, token, rows, panel);
        product({own_u, b_padded, 1, l_back_ + panel * of_b_, kColumns, sides_.b}, rows, kPanelVectors, d, kColumns, false);
        if (gate_)
          gated_backward<F>(rows * kColumns, h, d, g);
        else
          backward<F>(rows * kColumns, h, d);
        input_.pass_on(d, group, token, rows, panel, begins);
        if (gate_) gate_->pass_on(g, group, token, rows, panel, begins);
        product({h, 1, kColumns, own_u, b_padded, rows}, kColumns, b_padded / kLanes, dl_ + panel * to_b_, b_padded, !begins.tokens);
      }
  }

  // h becomes f(h), d the gradient of h.
  template <class F>
  static void backward(int64_t count, float* h, float* d) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float x = h[i], y = F::forward(x);
      h[i] = y;
      d[i] = F::backward(d[i], std::is_same_v<F, Tanh> ? y : x);  // whose slope follows from its value
    }
  }
  // h becomes f(h) g, d the gradient of h, g its own.
  template <class F>
  static void gated_backward(int64_t count, float* h, float* d, float* g) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float x = h[i], y = F::forward(x), dy = d[i], by = g[i];
      h[i] = y * by;
      d[i] = F::backward(dy * by, x);
      g[i] = dy * y;
    }
  }

  void store_weights() {
    each_panel(pool_, sides_, [&](int64_t panel, int64_t first, int64_t count) {
      each_input([&](const BackwardInput& input) { input.store_panel(panel, first, count); });
      for (int64_t i = 0; i < count; ++i) {
        const float* from = dl_ + panel * to_b_ + i * sides_.b_padded;
        std::copy(from, from + sides_.b, args_.dl.data<float>() + (first + i) * args_.dl.ld);
      }
    });
  }

  ThreadPool& pool_;
  const Sides& sides_;
  const op::WaistActivationBackward& args_;
  const int64_t groups_ = std::min(kGroups, sides_.panels), chunk_ = std::min(kChunk, sides_.tokens);
  const int64_t of_b_ = kColumns * sides_.b, to_b_ = kColumns * sides_.b_padded;  // floats of a packed panel
  const BackwardInput input_;
  std::optional<const BackwardInput> gate_;
  float *l_back_, *u_, *dl_;  // l by panels: (B, panel); dy of the chunk, padded; dl by panels
};

}  // namespace

bool waist_tiles(ThreadPool& pool, Workspace& workspace, bool dry, const op::WaistActivation& args) {
  const Sides sides = sides_of(args, args.y);
  if (!sides.fit()) return false;
  Workspace::Call memory(workspace, dry);
  const int64_t l_panel = kColumns * sides.b_padded;
  const ForwardInput input(memory, sides, args.t, args.r);
  std::optional<const ForwardInput> gate;
  if (args.gate) gate.emplace(memory, sides, args.gate->t, args.gate->r);
  float* l = memory.take<float>(sides.panels * l_panel);
  if (dry) return true;
  each_panel(pool, sides, [&](int64_t panel, int64_t first, int64_t count) {
    input.pack_panel(panel, first, count);
    if (gate) gate->pack_panel(panel, first, count);
    pack_rows(l + panel * l_panel, {args.l.data<float>(), args.l.ld, 1}, sides.b_padded, sides.b, first, count);
  });
  const float* bias = args.bias ? args.bias.data<float>() : nullptr;
  float* y = args.y.data<float>();
  by_kind(args.kind, [&](auto f) {
    pool.parallel_for(ceil_div(sides.tokens, kTokens), 1, [&](int64_t begin, int64_t end) {
      alignas(64) float h[kTokens * kColumns], g[kTokens * kColumns], sum[kTokens * kSkinny];
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t token = tile * kTokens, rows = std::min(kTokens, sides.tokens - token);
        for (int64_t panel = 0; panel < sides.panels; ++panel) {
          input.multiply(h, token, rows, panel);
          if (gate) gate->multiply(g, token, rows, panel);
          if (gate) {
#pragma GCC ivdep
            for (int64_t i = 0; i < rows * kColumns; ++i) h[i] = decltype(f)::forward(h[i]) * g[i];
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < rows * kColumns; ++i) h[i] = decltype(f)::forward(h[i]);
          }
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
  const Sides sides = sides_of(args, args.dy);
  if (!sides.fit()) return false;
  Workspace::Call memory(workspace, dry);
  BackwardTiles tiles(pool, memory, sides, args);
  if (!dry) tiles.run();
  return true;
}

}  // namespace comera
