// Two thin products with an activation between them (METHODS.md 12.4), as in a feed-forward block of tensor trains: the wide tensor
// f(t r) (T, O), or f(t r) (t' r') of a gated block, is made in parts and never exists whole. Letters: T tokens, A, A' and B thin sides,
// O wide side.
#pragma once
#include <optional>

#include "core/ops/pointwise.h"
#include "core/ops/products.h"

namespace comera {
namespace op {

// y (T, B) = f(t r) l + bias, with t (T, A), r (A, O), l (O, B), bias (B) or none; or with a gate (f(t r) (gate.t gate.r)) l + bias, with
// gate.t (T, A'), gate.r (A', O) and an f whose backward reads its input.
struct WaistActivation {
  static constexpr const char* name = "waist_activation";
  static constexpr bool large_workspace = true;
  Activation kind = Activation::gelu;
  Mat y, t, r, l;
  Tensor bias;  // may be empty; else y has all columns of its tensor
  struct Gate {
    Mat t, r;
  };
  std::optional<Gate> gate = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.t, a.r, a.l, a.bias);
    if (a.gate) see.in(a.gate->t, a.gate->r);
  }
  void check() const;
  Work work(double bytes) const;
};
// Its gradients "=": dt for all or the first columns of t, dr (A, O), dl (O, B), and those of the gate. The wide tensor is computed again.
struct WaistActivationBackward {
  static constexpr const char* name = "waist_activation_backward";
  static constexpr bool large_workspace = true;
  Activation kind = Activation::gelu;
  Mat dt, dr, dl, dy, t, r, l;
  struct Gate {
    Mat dt, dr, t, r;
  };
  std::optional<Gate> gate = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.dt, a.dr, a.dl);
    if (a.gate) see.out(a.gate->dt, a.gate->dr);
    see.in(a.dy, a.t, a.r, a.l);
    if (a.gate) see.in(a.gate->t, a.gate->r);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

// How devices without a kernel of their own compute them: for `rows` tokens at a time, with products and activations of the wide part.
// Calls has gemm(GemmArgs), forward(kind, y, x), backward(kind, dx, dy, saved) and gated_forward(kind, y, x, gate), gated_backward(kind,
// dx, dgate, dy, x, gate), which all may be in place, and fill(y, row). The wide parts h, d and, with a gate, g, (rows, O), are working
// memory.
template <class Calls>
void waist_in_parts(const op::WaistActivation& a, int64_t rows, const Tensor& h, const Tensor& g, const Calls& call) {
  if (a.bias) call.fill(a.y.tensor, a.bias);
  for (int64_t first = 0; first < a.y.rows; first += rows) {
    const int64_t count = std::min(rows, a.y.rows - first);
    const Tensor part = h.rows(0, count);
    const Mat wide(part, count, a.r.cols);
    call.gemm({wide, a.t.row_range(first, count), false, a.r, false});
    if (a.gate) {
      const Tensor of_g = g.rows(0, count);
      call.gemm({Mat(of_g, count, a.r.cols), a.gate->t.row_range(first, count), false, a.gate->r, false});
      call.gated_forward(a.kind, part, part, of_g);
    } else {
      call.forward(a.kind, part, part);
    }
    call.gemm({a.y.row_range(first, count), wide, false, a.l, false, 1, a.bias ? 1.0 : 0.0});
  }
}
template <class Calls>
void waist_in_parts(const op::WaistActivationBackward& a, int64_t rows, const Tensor& h, const Tensor& d, const Tensor& g,
                    const Calls& call) {
  for (int64_t first = 0; first == 0 || first < a.dy.rows; first += rows) {  // once without tokens: gradients become 0
    const int64_t count = std::min(rows, a.dy.rows - first);
    const double beta = first == 0 ? 0 : 1;
    const auto of = [&](const Tensor& wide) { return wide.rows(0, count); };
    const auto matrix = [&](const Tensor& wide) { return Mat(of(wide), count, a.r.cols); };
    const auto pass_on = [&](const Tensor& gradient, const Mat& dt, const Mat& dr, const Mat& t, const Mat& r) {
      call.gemm({dr, t.row_range(first, count), true, matrix(gradient), false, 1, beta});
      call.gemm({dt.row_range(first, count), matrix(gradient), false, r.top(dt.cols), true});
    };
    const Mat dy = a.dy.row_range(first, count);
    call.gemm({matrix(h), a.t.row_range(first, count), false, a.r, false});
    if (a.gate) {
      call.gemm({matrix(g), a.gate->t.row_range(first, count), false, a.gate->r, false});
      call.gated_forward(a.kind, of(d), of(h), of(g));
    } else {
      call.forward(a.kind, of(d), of(h));
    }
    call.gemm({a.dl, matrix(d), true, dy, false, 1, beta});
    if (a.kind == Activation::tanh) call.forward(a.kind, of(h), of(h));  // its slope follows from its value
    call.gemm({matrix(d), dy, false, a.l, true});
    if (a.gate) {
      call.gated_backward(a.kind, of(d), of(g), of(d), of(h), of(g));
      pass_on(g, a.gate->dt, a.gate->dr, a.gate->t, a.gate->r);
    } else {
      call.backward(a.kind, of(d), of(d), of(h));
    }
    pass_on(d, a.dt, a.dr, a.t, a.r);
  }
}

#define COMERA_WAIST_OPS(OP) OP(WaistActivation) OP(WaistActivationBackward)

}  // namespace comera
