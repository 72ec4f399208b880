// Two thin products with an activation between them (METHODS.md 12.4), in TF32 on tensor cores: f32 under tf32, bf16 and fp8, with thin
// sides of up to 64. A block makes a part of the wide f(t r) in registers (strip.h) and multiplies it at once. Sums over parts are
// partial sums in working memory, which one more kernel adds in order. Everything else goes in parts of tokens through the library.
#pragma once
#include "core/ops/small_floats.h"
#include "gpu/gpu_ops.h"
#include "gpu/strip.h"

namespace comera::gpu {

// Any activation, by a branch that all threads take alike. Unlike the functors, backward takes x for each.
struct AnyActivation {
  Activation kind;
  KERNEL float forward(float x) const {
    switch (kind) {
      case Activation::gelu:
        return Gelu::forward(x);
      case Activation::gelu_tanh:
        return GeluTanh::forward(x);
      case Activation::silu:
        return Silu::forward(x);
      case Activation::tanh:
        return Tanh::forward(x);
      case Activation::relu:
        return Relu::forward(x);
    }
    return x;
  }
  KERNEL float backward(float dy, float x) const {
    switch (kind) {
      case Activation::gelu:
        return Gelu::backward(dy, x);
      case Activation::gelu_tanh:
        return GeluTanh::backward(dy, x);
      case Activation::silu:
        return Silu::backward(dy, x);
      case Activation::tanh:
        return Tanh::backward(dy, Tanh::forward(x));
      case Activation::relu:
        return Relu::backward(dy, x);
    }
    return dy;
  }
};

struct WaistMatrix {
  const float* x;
  int64_t rows, columns, ld;
  bool fours;  // rows are read by 16 bytes
  explicit WaistMatrix(const Mat& m)
      : x(m.data<float>()), rows(m.rows), columns(m.cols), ld(m.ld), fours(m.ld % 4 == 0 && of_fours(m.cols, x)) {}
};

// Tiles of operands have kThin columns and StripLayout's places; what lies outside a matrix is 0.
template <int kThin>
struct WaistTiles {
  static constexpr int kThreads = 128, kSide = 64, kLine = kThin + 4;  // a warp for 16 of kSide rows

  // tile (kRows, kThin) = rows [first, first + kRows) of m.
  template <int kRows, class Group>
  KERNEL static void load_rows(const Group& g, float* tile, const WaistMatrix& m, int64_t first) {
    const int rows = m.rows - first < kRows ? static_cast<int>(m.rows - first) : kRows;
    load_operand<kRows, kThin, kThreads>(g, tile, m.x + first * m.ld, m.ld, rows, static_cast<int>(m.columns), m.fours);
  }
  // tile (kRows, kThin) = columns [first, first + kRows) of m, each as a row.
  template <int kRows, class Group>
  KERNEL static void load_columns(const Group& g, float* tile, const WaistMatrix& m, int64_t first) {
    load_transposed<kRows, kThin, kThreads>(g, tile, m.x + first, m.ld, static_cast<int>(m.rows), m.columns - first, m.fours);
  }
  // Rows [first, rows) of `to` (rows, kThin) from the strip of their block.
  template <class Strip>
  KERNEL static void store(Strip& strip, float* to, int64_t first, int64_t rows) {
    strip.each_four([&](int row, int column, int, const Four<float>& four) {
      if (first + row < rows) store_four(to + (first + row) * kThin + column, four);
    });
  }
};

// partial (pieces, T, kThin) = f(t r) l, each piece over its own columns of r.
template <int kThin, class F>
struct WaistForward : WaistTiles<kThin> {
  using Tiles = WaistTiles<kThin>;
  static constexpr int kBlocks = 4, kChunk = 64;  // columns of r at a time
  WaistMatrix t, r, l;
  int64_t pieces;
  F f;
  float* partial;

  static constexpr int64_t kShared = (Tiles::kSide + 2 * kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float *of_t = g.template shared<float>(), *of_r = of_t + kSide * kLine, *of_l = of_r + kChunk * kLine;
    const int64_t tiles = ceil_div(t.rows, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(r.columns, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide);
      typename Group::template Strip<kThin, false> sum(g, kSide);
      sum.clear();
      Tiles::template load_rows<kSide>(g, of_t, t, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        Tiles::template load_columns<kChunk>(g, of_r, r, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_l, l, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_t, of_r);
        h.each_four([&](int, int, int, Four<float>& x) {
          for (float& e : x.v) e = tf32_of(f.forward(e));
        });
        sum.template add<kLine>(h, of_l);
        g.sync();
      }
      Tiles::store(sum, partial + piece * t.rows * kThin, first, t.rows);
    }
  }
};

// partial (pieces, T, kThin) = dt = (dy l^T f'(t r)) r^T, each piece over its own columns of r.
template <int kThin, class F>
struct WaistBackwardTokens : WaistTiles<kThin> {
  using Tiles = WaistTiles<kThin>;
  static constexpr int kBlocks = 4, kChunk = 32;
  WaistMatrix dy, t, r, l;
  int64_t pieces;
  F f;
  float* partial;

  static constexpr int64_t kShared = 2 * (Tiles::kSide + kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float *of_t = g.template shared<float>(), *of_dy = of_t + kSide * kLine, *of_r = of_dy + kSide * kLine, *of_l = of_r + kChunk * kLine;
    const int64_t tiles = ceil_div(t.rows, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(r.columns, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide), d(g, kSide);
      typename Group::template Strip<kThin, false> sum(g, kSide);
      sum.clear();
      Tiles::template load_rows<kSide>(g, of_t, t, first);
      Tiles::template load_rows<kSide>(g, of_dy, dy, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        Tiles::template load_columns<kChunk>(g, of_r, r, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_l, l, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_t, of_r);
        d.template dots<kThin, kLine>(of_dy, of_l);
        d.each_four(
            [&](int, int, int, Four<float>& gradient, Four<float>& x) {
              for (int i = 0; i < 4; ++i) gradient.v[i] = tf32_of(f.backward(gradient.v[i], x.v[i]));
            },
            h);
        sum.template add<kLine>(d, of_r);
        g.sync();
      }
      Tiles::store(sum, partial + piece * t.rows * kThin, first, t.rows);
    }
  }
};

// of_l (pieces, O, kThin) = dl = f(t r)^T dy, of_r the same of dr^T = (dy l^T f'(t r))^T t, each piece over its own tokens. Strips have
// a row for each column of r.
template <int kThin, class F>
struct WaistBackwardSides : WaistTiles<kThin> {
  using Tiles = WaistTiles<kThin>;
  static constexpr int kBlocks = 3, kChunk = 32;  // tokens at a time
  WaistMatrix dy, t, r, l;
  int64_t pieces;
  F f;
  float *partial_l, *partial_r;

  static constexpr int64_t kShared = 2 * (Tiles::kSide + kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float *of_r = g.template shared<float>(), *of_l = of_r + kSide * kLine, *of_t = of_l + kSide * kLine, *of_dy = of_t + kChunk * kLine;
    const int64_t tiles = ceil_div(r.columns, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(t.rows, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide), d(g, kSide);
      typename Group::template Strip<kThin, false> sum_l(g, kSide), sum_r(g, kSide);
      sum_l.clear();
      sum_r.clear();
      Tiles::template load_columns<kSide>(g, of_r, r, first);
      Tiles::template load_rows<kSide>(g, of_l, l, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        Tiles::template load_rows<kChunk>(g, of_t, t, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_dy, dy, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_r, of_t);
        d.template dots<kThin, kLine>(of_l, of_dy);
        d.each_four(
            [&](int, int, int, Four<float>& gradient, Four<float>& x) {
              for (int i = 0; i < 4; ++i) {
                gradient.v[i] = tf32_of(f.backward(gradient.v[i], x.v[i]));
                x.v[i] = tf32_of(f.forward(x.v[i]));
              }
            },
            h);
        sum_l.template add<kLine>(h, of_dy);
        sum_r.template add<kLine>(d, of_t);
        g.sync();
      }
      Tiles::store(sum_l, partial_l + piece * r.columns * kThin, first, r.columns);
      Tiles::store(sum_r, partial_r + piece * r.columns * kThin, first, r.columns);
      g.sync();  // without tokens, too, before the next item's tiles
    }
  }
};

// Adds the pieces of partial sums: y (rows, columns) = bias + their sum, or the transpose of it.
struct WaistSum {
  const float* partial = nullptr;  // (pieces, rows, thin)
  int64_t pieces = 0, rows = 0;
  float* y = nullptr;
  int64_t columns = 0, ld = 0;
  const float* bias = nullptr;  // (columns), may be null
  bool transposed = false;      // y is (columns, rows)
};
template <int kSums>
struct WaistFold {
  int64_t thin;
  WaistSum sums[kSums];
  HD int64_t count() const {
    int64_t all = 0;
    for (const WaistSum& sum : sums) all += sum.rows * thin;
    return all;
  }
  KERNEL void operator()(int64_t i) const {
    for (const WaistSum& s : sums) {
      const int64_t own = s.rows * thin;
      if (i >= 0 && i < own && i % thin < s.columns) {
        const int64_t row = i / thin, column = i % thin;
        float total = s.bias ? s.bias[column] : 0;
        for (int64_t piece = 0; piece < s.pieces; ++piece) total += s.partial[piece * own + i];
        s.y[s.transposed ? column * s.ld + row : row * s.ld + column] = total;
      }
      i -= own;
    }
  }
};

// Blocks that are wanted: several for each of a device's multiprocessors. By the shape alone, so sums have one order everywhere.
inline int64_t waist_pieces(int64_t tiles, int64_t most) {
  constexpr int64_t kWanted = 1024;
  return std::clamp<int64_t>(kWanted / std::max<int64_t>(tiles, 1), 1, std::max<int64_t>(most, 1));
}
template <class Machine, class Body>
void launch_waist(Machine& machine, int64_t items, const Body& body) {
  machine.launch({std::min(items, kMostBlocks), Body::kThreads, Body::kShared}, body);
}

template <int kThin, class F, class Machine>
void waist_in_strips(Machine& machine, const op::WaistActivation& args, const F& f) {
  const WaistMatrix t(args.t), r(args.r), l(args.l);
  using Body = WaistForward<kThin, F>;
  const int64_t tiles = ceil_div(t.rows, Body::kSide), pieces = waist_pieces(tiles, ceil_div(r.columns, Body::kChunk));
  float* partial = machine.template scratch<float>(pieces * t.rows * kThin);
  launch_waist(machine, tiles * pieces, Body{{}, t, r, l, pieces, f, partial});
  const WaistFold<1> fold{
      kThin,
      {{partial, pieces, t.rows, args.y.data<float>(), args.y.cols, args.y.ld, args.bias ? args.bias.data<float>() : nullptr, false}}};
  machine.launch(over_elements(fold.count()), Elements<WaistFold<1>>{fold.count(), fold});
}

template <int kThin, class F, class Machine>
void waist_in_strips(Machine& machine, const op::WaistActivationBackward& args, const F& f) {
  const WaistMatrix dy(args.dy), t(args.t), r(args.r), l(args.l);
  using Tokens = WaistBackwardTokens<kThin, F>;
  using Sides = WaistBackwardSides<kThin, F>;
  const int64_t tiles = ceil_div(t.rows, Tokens::kSide), pieces = waist_pieces(tiles, ceil_div(r.columns, Tokens::kChunk)),
                of_sides = ceil_div(r.columns, Sides::kSide), side_pieces = waist_pieces(of_sides, ceil_div(t.rows, Sides::kChunk));
  float *of_t = machine.template scratch<float>(pieces * t.rows * kThin),
        *of_l = machine.template scratch<float>(side_pieces * r.columns * kThin),
        *of_r = machine.template scratch<float>(side_pieces * r.columns * kThin);
  launch_waist(machine, tiles * pieces, Tokens{{}, dy, t, r, l, pieces, f, of_t});
  launch_waist(machine, of_sides * side_pieces, Sides{{}, dy, t, r, l, side_pieces, f, of_l, of_r});
  const WaistFold<3> fold{kThin,
                          {{of_t, pieces, t.rows, args.dt.data<float>(), args.dt.cols, args.dt.ld},
                           {of_l, side_pieces, r.columns, args.dl.data<float>(), args.dl.cols, args.dl.ld},
                           {of_r, side_pieces, r.columns, args.dr.data<float>(), args.dr.rows, args.dr.ld, nullptr, true}}};
  machine.launch(over_elements(fold.count()), Elements<WaistFold<3>>{fold.count(), fold});
}

// True: done by the kernels above.
template <class Machine, class Args>
bool waist_in_strips(Machine& machine, const Args& args) {
  const int64_t thin = std::max(args.r.rows, args.l.cols);
  if (args.gate || args.r.tensor.dtype() != DType::f32 || machine.products() == Products::fp32 || thin > 64) return false;
  const auto with = [&](const auto& f) {
    if (thin <= 32)
      waist_in_strips<32>(machine, args, f);
    else
      waist_in_strips<64>(machine, args, f);
  };
  if (args.kind == Activation::gelu)
    with(Gelu{});
  else
    with(AnyActivation{args.kind});
  return true;
}

inline constexpr int64_t kWaistRows = 2048;  // tokens of a part

// For waist_in_parts.
template <class M>
struct GpuOps<M>::WaistCalls {
  GpuOps& ops;
  void gemm(const GemmArgs& args) const { ops.product(args); }
  void forward(Activation kind, const Tensor& y, const Tensor& x) const { ops.activate(kind, y, x); }
  void backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) const { ops.activate_back(kind, dx, dy, saved); }
  void gated_forward(Activation kind, const Tensor& y, const Tensor& x, const Tensor& gate) const { ops.gate(kind, y, x, gate); }
  void gated_backward(Activation kind, const Tensor& dx, const Tensor& dgate, const Tensor& dy, const Tensor& x, const Tensor& gate) const {
    ops.gate_back(kind, dx, dgate, dy, x, gate);
  }
  void fill(const Tensor& y, const Tensor& row) const { ops.broadcast(y, row); }
};

template <class M>
void GpuOps<M>::body(const op::WaistActivation& args) {
  begin(args, {args.y.rows, args.r.cols, args.y.cols});
  if (waist_in_strips(machine_, args)) return;
  by_float_type(args.y.tensor, [&](auto type) {
    const Shape part{std::clamp<int64_t>(args.y.rows, 1, kWaistRows), args.r.cols};
    const auto wide = [&] { return Tensor(machine_.template scratch<decltype(type)>(part.count()), part, args.y.tensor.dtype()); };
    const Tensor h = wide(), g = args.gate ? wide() : Tensor();
    waist_in_parts(args, part[0], h, g, WaistCalls{*this});
  });
}

template <class M>
void GpuOps<M>::body(const op::WaistActivationBackward& args) {
  begin(args, {args.dy.rows, args.r.cols, args.dy.cols});
  if (waist_in_strips(machine_, args)) return;
  by_float_type(args.dy.tensor, [&](auto type) {
    const Shape part{std::clamp<int64_t>(args.dy.rows, 1, kWaistRows), args.r.cols};
    const auto wide = [&] { return Tensor(machine_.template scratch<decltype(type)>(part.count()), part, args.dy.tensor.dtype()); };
    const Tensor h = wide(), d = wide(), g = args.gate ? wide() : Tensor();
    waist_in_parts(args, part[0], h, d, g, WaistCalls{*this});
  });
}

}  // namespace comera::gpu
