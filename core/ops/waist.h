// Two thin products with an activation between them (METHODS.md 12.4), as in a feed-forward block of tensor trains: the wide tensor
// f(t r) (T, O) is made in parts and never exists whole. Letters: T tokens, A and B thin sides, O wide side.
#pragma once
#include "core/ops/pointwise.h"
#include "core/ops/products.h"

namespace comera {
namespace op {

struct WaistActivation {  // y (T, B) = f(t r) l + bias, with t (T, A), r (A, O), l (O, B), bias (B) or none
  static constexpr const char* name = "waist_activation";
  static constexpr bool large_workspace = true;
  Activation kind = Activation::gelu;
  Mat y, t, r, l;
  Tensor bias;  // may be empty; else y has all columns of its tensor
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.t, a.r, a.l, a.bias);
  }
  void check() const;
  Work work(double bytes) const;
};
// Its gradients "=": dt (T, A') for the first A' <= A columns of t, dr (A, O), dl (O, B). f(t r) is computed again.
struct WaistActivationBackward {
  static constexpr const char* name = "waist_activation_backward";
  static constexpr bool large_workspace = true;
  Activation kind = Activation::gelu;
  Mat dt, dr, dl, dy, t, r, l;
  static void tensors(auto& a, auto& see) {
    see.out(a.dt, a.dr, a.dl);
    see.in(a.dy, a.t, a.r, a.l);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

// How devices without a kernel of their own compute them: for `rows` tokens at a time, with products and activations of the wide part.
// Calls has gemm(GemmArgs), forward(kind, y, x), backward(kind, dx, dy, saved), which may be in place, and fill(y, row). The wide parts
// h and d, (rows, O), are working memory.
template <class Calls>
void waist_in_parts(const op::WaistActivation& a, int64_t rows, const Tensor& h, const Calls& call) {
  if (a.bias) call.fill(a.y.tensor, a.bias);
  for (int64_t first = 0; first < a.y.rows; first += rows) {
    const int64_t count = std::min(rows, a.y.rows - first);
    const Tensor part = h.rows(0, count);
    const Mat wide(part, count, a.r.cols);
    call.gemm({wide, a.t.row_range(first, count), false, a.r, false});
    call.forward(a.kind, part, part);
    call.gemm({a.y.row_range(first, count), wide, false, a.l, false, 1, a.bias ? 1.0 : 0.0});
  }
}
template <class Calls>
void waist_in_parts(const op::WaistActivationBackward& a, int64_t rows, const Tensor& h, const Tensor& d, const Calls& call) {
  for (int64_t first = 0; first == 0 || first < a.dy.rows; first += rows) {  // once without tokens: gradients become 0
    const int64_t count = std::min(rows, a.dy.rows - first);
    const double beta = first == 0 ? 0 : 1;
    const Tensor of_h = h.rows(0, count), of_d = d.rows(0, count);
    const Mat t = a.t.row_range(first, count), dy = a.dy.row_range(first, count), wide(of_h, count, a.r.cols),
              gradient(of_d, count, a.r.cols);
    call.gemm({wide, t, false, a.r, false});
    call.forward(a.kind, of_d, of_h);
    call.gemm({a.dl, gradient, true, dy, false, 1, beta});
    if (a.kind == Activation::tanh) call.forward(a.kind, of_h, of_h);  // its slope follows from its value
    call.gemm({gradient, dy, false, a.l, true});
    call.backward(a.kind, of_d, of_d, of_h);
    call.gemm({a.dr, t, true, gradient, false, 1, beta});
    call.gemm({a.dt.row_range(first, count), gradient, false, a.r.top(a.dt.cols), true});
  }
}

#define COMERA_WAIST_OPS(OP) OP(WaistActivation) OP(WaistActivationBackward)

}  // namespace comera
