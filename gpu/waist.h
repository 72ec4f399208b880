// Two thin products with an activation between them, with a gate or without (METHODS.md 12.4), in TF32 on tensor cores: f32 under tf32,
// bf16 and fp8, with thin sides of up to 64. A block makes a part of the wide f(t r), or f(t r) (t' r'), in registers (strip.h) and
// multiplies it at once. Sums over parts are partial sums in working memory, which one more kernel adds in order. Everything else goes in
// parts of tokens through the library.
#pragma once
#include <utility>

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
  const float* x = nullptr;
  int64_t rows = 0, columns = 0, ld = 0;
  bool fours = false;  // rows are read by 16 bytes
  WaistMatrix() = default;
  explicit WaistMatrix(const Mat& m)
      : x(m.data<float>()), rows(m.rows), columns(m.cols), ld(m.ld), fours(m.ld % 4 == 0 && of_fours(m.cols, x)) {}
};

// The wide part is f(t r), multiplied by gate.t gate.r if kGated. Tiles of operands have kThin columns and StripLayout's places; what lies
// outside a matrix is 0.
template <int kThin, bool kGated>
struct WaistTiles {
  static constexpr int kThreads = 128, kSide = 64, kLine = kThin + 4;  // a warp for 16 of kSide rows
  static constexpr int kInputs = kGated ? 2 : 1;
  struct Input {
    WaistMatrix t, r;
  };
  Input inputs[kInputs];  // the second: the gate's
  WaistMatrix l;

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
template <int kThin, bool kGated, class F>
struct WaistForward : WaistTiles<kThin, kGated> {
  using Tiles = WaistTiles<kThin, kGated>;
  static constexpr int kBlocks = kGated ? 2 : 4, kChunk = 64;  // columns of r at a time
  int64_t pieces;
  F f;
  float* partial;

  static constexpr int64_t kShared = (Tiles::kInputs * (Tiles::kSide + kChunk) + kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float* of_t[Tiles::kInputs];
    float* of_r[Tiles::kInputs];
    float* of_l = g.template shared<float>();
    for (int k = 0; k < Tiles::kInputs; ++k) of_t[k] = of_l + (kChunk + k * (kSide + kChunk)) * kLine, of_r[k] = of_t[k] + kSide * kLine;
    const int64_t tokens = this->inputs[0].t.rows, wide = this->inputs[0].r.columns, tiles = ceil_div(tokens, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(wide, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide);
      typename Group::template Strip<kThin, false> sum(g, kSide);
      sum.clear();
      for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_rows<kSide>(g, of_t[k], this->inputs[k].t, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_columns<kChunk>(g, of_r[k], this->inputs[k].r, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_l, this->l, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_t[0], of_r[0]);
        if constexpr (kGated) {
          typename Group::template Strip<kChunk, false> gate(g, kSide);
          gate.template dots<kThin, kLine>(of_t[1], of_r[1]);
          h.each_four(
              [&](int, int, int, Four<float>& x, Four<float>& by) {
                for (int i = 0; i < 4; ++i) x.v[i] = tf32_of(f.forward(x.v[i]) * by.v[i]);
              },
              gate);
        } else {
          h.each_four([&](int, int, int, Four<float>& x) {
            for (float& e : x.v) e = tf32_of(f.forward(e));
          });
        }
        sum.template add<kLine>(h, of_l);
        g.sync();
      }
      Tiles::store(sum, partial + piece * tokens * kThin, first, tokens);
    }
  }
};

// partial (pieces, T, kThin) = dt = (dy l^T f'(t r)) r^T, each piece over its own columns of r. With a gate, f'(t r) is multiplied by it,
// and gate_partial is the gate's dt = (dy l^T f(t r)) gate.r^T.
template <int kThin, bool kGated, class F>
struct WaistBackwardTokens : WaistTiles<kThin, kGated> {
  using Tiles = WaistTiles<kThin, kGated>;
  static constexpr int kBlocks = kGated ? 2 : 4, kChunk = 32;
  WaistMatrix dy;
  int64_t pieces;
  F f;
  float *partial, *gate_partial;

  static constexpr int64_t kShared = (1 + Tiles::kInputs) * (Tiles::kSide + kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float* of_t[Tiles::kInputs];
    float* of_r[Tiles::kInputs];
    float *of_dy = g.template shared<float>(), *of_l = of_dy + kSide * kLine;
    for (int k = 0; k < Tiles::kInputs; ++k) of_t[k] = of_dy + (1 + k) * (kSide + kChunk) * kLine, of_r[k] = of_t[k] + kSide * kLine;
    const int64_t tokens = dy.rows, wide = this->inputs[0].r.columns, tiles = ceil_div(tokens, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(wide, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide), d(g, kSide), gate(g, kSide);
      typename Group::template Strip<kThin, false> sum(g, kSide), gate_sum(g, kSide);
      sum.clear();
      gate_sum.clear();
      for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_rows<kSide>(g, of_t[k], this->inputs[k].t, first);
      Tiles::template load_rows<kSide>(g, of_dy, dy, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_columns<kChunk>(g, of_r[k], this->inputs[k].r, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_l, this->l, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_t[0], of_r[0]);
        d.template dots<kThin, kLine>(of_dy, of_l);
        if constexpr (kGated) {
          gate.template dots<kThin, kLine>(of_t[1], of_r[1]);
          d.each_four(
              [&](int, int, int, Four<float>& gradient, Four<float>& x, Four<float>& by) {
                for (int i = 0; i < 4; ++i) {
                  const float up = gradient.v[i];
                  gradient.v[i] = tf32_of(f.backward(up * by.v[i], x.v[i]));
                  by.v[i] = tf32_of(up * f.forward(x.v[i]));
                }
              },
              h, gate);
          gate_sum.template add<kLine>(gate, of_r[1]);
        } else {
          d.each_four(
              [&](int, int, int, Four<float>& gradient, Four<float>& x) {
                for (int i = 0; i < 4; ++i) gradient.v[i] = tf32_of(f.backward(gradient.v[i], x.v[i]));
              },
              h);
        }
        sum.template add<kLine>(d, of_r[0]);
        g.sync();
      }
      Tiles::store(sum, partial + piece * tokens * kThin, first, tokens);
      if constexpr (kGated) Tiles::store(gate_sum, gate_partial + piece * tokens * kThin, first, tokens);
    }
  }
};

// partial_l (pieces, O, kThin) = dl = f(t r)^T dy, partial_r the same of dr^T = (dy l^T f'(t r))^T t, each piece over its own tokens. With
// a gate, f(t r) and f'(t r) are multiplied by it, and gate_partial is the gate's dr^T = (dy l^T f(t r))^T gate.t. Strips have a row for
// each column of r.
template <int kThin, bool kGated, class F>
struct WaistBackwardSides : WaistTiles<kThin, kGated> {
  using Tiles = WaistTiles<kThin, kGated>;
  static constexpr int kBlocks = kGated ? 2 : 3, kChunk = 32;  // tokens at a time
  WaistMatrix dy;
  int64_t pieces;
  F f;
  float *partial_l, *partial_r, *gate_partial;

  static constexpr int64_t kShared = (1 + Tiles::kInputs) * (Tiles::kSide + kChunk) * Tiles::kLine * int64_t{sizeof(float)};
  template <class Group>
  KERNEL void operator()(Group& g) const {
    constexpr int kSide = Tiles::kSide, kLine = Tiles::kLine;
    float* of_t[Tiles::kInputs];
    float* of_r[Tiles::kInputs];
    float *of_l = g.template shared<float>(), *of_dy = of_l + kSide * kLine;
    for (int k = 0; k < Tiles::kInputs; ++k) of_r[k] = of_l + (1 + k) * (kSide + kChunk) * kLine, of_t[k] = of_r[k] + kSide * kLine;
    const int64_t tokens = dy.rows, wide = this->inputs[0].r.columns, tiles = ceil_div(wide, kSide);
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t first = item % tiles * kSide, piece = item / tiles;
      const Range chunks = Range{0, ceil_div(tokens, kChunk)}.piece(piece, pieces);
      typename Group::template Strip<kChunk, false> h(g, kSide), d(g, kSide), gate(g, kSide);
      typename Group::template Strip<kThin, false> sum_l(g, kSide), sum_r(g, kSide), gate_sum(g, kSide);
      sum_l.clear();
      sum_r.clear();
      gate_sum.clear();
      for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_columns<kSide>(g, of_r[k], this->inputs[k].r, first);
      Tiles::template load_rows<kSide>(g, of_l, this->l, first);
      for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        for (int k = 0; k < Tiles::kInputs; ++k) Tiles::template load_rows<kChunk>(g, of_t[k], this->inputs[k].t, chunk * kChunk);
        Tiles::template load_rows<kChunk>(g, of_dy, dy, chunk * kChunk);
        g.sync();
        h.template dots<kThin, kLine>(of_r[0], of_t[0]);
        d.template dots<kThin, kLine>(of_l, of_dy);
        if constexpr (kGated) {
          gate.template dots<kThin, kLine>(of_r[1], of_t[1]);
          d.each_four(
              [&](int, int, int, Four<float>& gradient, Four<float>& x, Four<float>& by) {
                for (int i = 0; i < 4; ++i) {
                  const float up = gradient.v[i], factor = by.v[i], value = f.forward(x.v[i]);
                  gradient.v[i] = tf32_of(f.backward(up * factor, x.v[i]));
                  by.v[i] = tf32_of(up * value);
                  x.v[i] = tf32_of(value * factor);
                }
              },
              h, gate);
          gate_sum.template add<kLine>(gate, of_t[1]);
        } else {
          d.each_four(
              [&](int, int, int, Four<float>& gradient, Four<float>& x) {
                for (int i = 0; i < 4; ++i) {
                  gradient.v[i] = tf32_of(f.backward(gradient.v[i], x.v[i]));
                  x.v[i] = tf32_of(f.forward(x.v[i]));
                }
              },
              h);
        }
        sum_l.template add<kLine>(h, of_dy);
        sum_r.template add<kLine>(d, of_t[0]);
        g.sync();
      }
      Tiles::store(sum_l, partial_l + piece * wide * kThin, first, wide);
      Tiles::store(sum_r, partial_r + piece * wide * kThin, first, wide);
      if constexpr (kGated) Tiles::store(gate_sum, gate_partial + piece * wide * kThin, first, wide);
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
  KERNEL void operator()(int64_t i) const { one_of(i, std::make_index_sequence<kSums>()); }

 private:
  template <size_t... K>  // no loop, whose index of a kernel argument would be known at run time only
  KERNEL void one_of(int64_t i, std::index_sequence<K...>) const {
    (add(sums[K], i), ...);
  }
  KERNEL void add(const WaistSum& s, int64_t& i) const {
    const int64_t own = s.rows * thin;
    if (i >= 0 && i < own && i % thin < s.columns) {
      const int64_t row = i / thin, column = i % thin;
      float total = s.bias ? s.bias[column] : 0;
      for (int64_t piece = 0; piece < s.pieces; ++piece) total += s.partial[piece * own + i];
      s.y[s.transposed ? column * s.ld + row : row * s.ld + column] = total;
    }
    i -= own;
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

template <int kThin, bool kGated, class Args>
WaistTiles<kThin, kGated> waist_tiles(const Args& args) {
  WaistTiles<kThin, kGated> tiles{{}, WaistMatrix(args.l)};
  tiles.inputs[0] = {WaistMatrix(args.t), WaistMatrix(args.r)};
  if constexpr (kGated) tiles.inputs[1] = {WaistMatrix(args.gate->t), WaistMatrix(args.gate->r)};
  return tiles;
}

template <int kThin, bool kGated, class F, class Machine>
void waist_in_strips(Machine& machine, const op::WaistActivation& args, const F& f) {
  using Body = WaistForward<kThin, kGated, F>;
  const int64_t tokens = args.t.rows, tiles = ceil_div(tokens, Body::kSide),
                pieces = waist_pieces(tiles, ceil_div(args.r.cols, Body::kChunk));
  float* partial = machine.template scratch<float>(pieces * tokens * kThin);
  launch_waist(machine, tiles * pieces, Body{waist_tiles<kThin, kGated>(args), pieces, f, partial});
  const WaistFold<1> fold{
      kThin,
      {{partial, pieces, tokens, args.y.data<float>(), args.y.cols, args.y.ld, args.bias ? args.bias.data<float>() : nullptr, false}}};
  machine.launch(over_elements(fold.count()), Elements<WaistFold<1>>{fold.count(), fold});
}

template <int kThin, bool kGated, class F, class Machine>
void waist_in_strips(Machine& machine, const op::WaistActivationBackward& args, const F& f) {
  using Tokens = WaistBackwardTokens<kThin, kGated, F>;
  using Sides = WaistBackwardSides<kThin, kGated, F>;
  const auto matrices = waist_tiles<kThin, kGated>(args);
  const WaistMatrix dy(args.dy);
  const int64_t tokens = dy.rows, wide = args.r.cols, tiles = ceil_div(tokens, Tokens::kSide),
                pieces = waist_pieces(tiles, ceil_div(wide, Tokens::kChunk)), of_sides = ceil_div(wide, Sides::kSide),
                side_pieces = waist_pieces(of_sides, ceil_div(tokens, Sides::kChunk));
  const auto of_tokens = [&] { return machine.template scratch<float>(pieces * tokens * kThin); };
  const auto of_side = [&] { return machine.template scratch<float>(side_pieces * wide * kThin); };
  float *of_t = of_tokens(), *of_l = of_side(), *of_r = of_side(), *of_gate_t = kGated ? of_tokens() : nullptr,
        *of_gate_r = kGated ? of_side() : nullptr;
  launch_waist(machine, tiles * pieces, Tokens{matrices, dy, pieces, f, of_t, of_gate_t});
  launch_waist(machine, of_sides * side_pieces, Sides{matrices, dy, side_pieces, f, of_l, of_r, of_gate_r});
  const auto sum_of_tokens = [&](const float* partial, const Mat& dt) {
    return WaistSum{partial, pieces, tokens, dt.data<float>(), dt.cols, dt.ld};
  };
  const auto sum_of_side = [&](const float* partial, const Mat& dr) {
    return WaistSum{partial, side_pieces, wide, dr.data<float>(), dr.rows, dr.ld, nullptr, true};
  };
  constexpr int kSums = kGated ? 5 : 3;
  WaistFold<kSums> fold{kThin,
                        {sum_of_tokens(of_t, args.dt),
                         {of_l, side_pieces, wide, args.dl.data<float>(), args.dl.cols, args.dl.ld},
                         sum_of_side(of_r, args.dr)}};
  if constexpr (kGated) fold.sums[3] = sum_of_tokens(of_gate_t, args.gate->dt), fold.sums[4] = sum_of_side(of_gate_r, args.gate->dr);
  machine.launch(over_elements(fold.count()), Elements<WaistFold<kSums>>{fold.count(), fold});
}

// True: done by the kernels above.
template <class Machine, class Args>
bool waist_in_strips(Machine& machine, const Args& args) {
  const int64_t thin = std::max({args.r.rows, args.l.cols, args.gate ? args.gate->r.rows : 0});
  if (args.r.tensor.dtype() != DType::f32 || machine.products() == Products::fp32 || thin > 64) return false;
  const auto with = [&](auto gated, const auto& f) {
    if (thin <= 32)
      waist_in_strips<32, gated>(machine, args, f);
    else
      waist_in_strips<64, gated>(machine, args, f);
  };
  if (args.gate)
    with(std::true_type{}, AnyActivation{args.kind});
  else if (args.kind == Activation::gelu)
    with(std::false_type{}, Gelu{});
  else
    with(std::false_type{}, AnyActivation{args.kind});
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
