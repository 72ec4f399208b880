// Matrix products.
#pragma once
#include "core/ops/op.h"

namespace comera {

// C (m, n) = alpha op(A) op(B) + beta C; op = transpose when the flag is set. beta 0 never reads C.
struct GemmArgs {
  Mat c, a;
  bool transpose_a;
  Mat b;
  bool transpose_b;
  double alpha = 1, beta = 0;
  static void tensors(auto& p, auto& see) {
    if (p.beta != 0)
      see.inout(p.c);
    else
      see.out(p.c);
    see.in(p.a, p.b);
  }
  void check() const;
  int64_t terms() const { return transpose_a ? a.rows : a.cols; }
  double flops() const { return 2.0 * static_cast<double>(c.rows) * static_cast<double>(c.cols) * static_cast<double>(terms()); }
};

// The product t r with a short inner side A: t (T, A), r (A, D); or t r^T with r (D, A). An op that takes it computes it row by row where
// it can, without storing it whole.
struct ThinProduct {
  Mat t, r;
  bool transpose_r = false;
  static void tensors(auto& p, auto& see) { see.in(p.t, p.r); }
  void check(const char* op, const Tensor& like) const;  // T and D are those of `like` (T, D), and so is the dtype
  double flops(const Tensor& like) const { return 2.0 * static_cast<double>(like.count()) * static_cast<double>(t.cols); }
};

namespace op {

struct Gemm : GemmArgs {
  static constexpr const char* name = "gemm";
  static constexpr bool large_workspace = true;
  Work work(double bytes) const { return {flops(), bytes, 0}; }
};
// Small products of one dtype: one kernel, where batched; one parallel region on a CPU.
struct Gemms {
  static constexpr const char* name = "gemm";
  static constexpr bool large_workspace = true;
  Items<GemmArgs> all;
  static void tensors(auto& a, auto& see) { see.items(a.all); }
  void check() const;
  Work work(double bytes) const;
};

// y (T, O) = x (T, I) w^T + b, with w (O, I) and b (O); not `transpose_w`: x w + b, with w (I, O).
struct Linear {
  static constexpr const char* name = "linear";
  static constexpr bool large_workspace = true;
  Tensor y, x, w, b;
  bool transpose_w = true;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x, a.w, a.b);
  }
  void check() const;
  Work work(double) const;
};
// Its gradients: dw (O, I) = dy^T x, db (O) = sum over rows of dy (T, O).
struct LinearBackward {
  static constexpr const char* name = "linear_backward";
  static constexpr bool large_workspace = true;
  Tensor dw, db, dy, x;
  static void tensors(auto& a, auto& see) {
    see.out(a.dw, a.db);
    see.in(a.dy, a.x);
  }
  void check() const;
  Work work(double) const;
};

}  // namespace op

#define COMERA_PRODUCT_OPS(OP) OP(Gemm) OP(Gemms) OP(Linear) OP(LinearBackward)

}  // namespace comera
