// Layer norm and RMS norm, with the residual branch folded in.
#pragma once
#include <optional>

#include "core/ops/products.h"

namespace comera {
namespace op {

// sum = x + dropout(branch); y = (sum - mean) * rstd * gamma + beta. x, branch, sum, y (T, D); mean, rstd (T).
// `branch` empty: plain norm, sum is not written and may be empty. `mean` and `beta` empty: RMS norm, y = sum * rstd * gamma with
// rstd = 1 / sqrt(mean(sum^2) + eps). `sum` may be `branch` or, without `thin`, x; y may be x.
// thin: the branch is this product; `branch` is then empty, and `sum` may be. before, only together with thin: x is the sum inside an
// earlier norm, whose output is computed from it and takes its place. after: dropout of y.
struct NormForward {
  static constexpr const char* name = "norm_forward";
  static constexpr bool large_workspace = true;
  Tensor y, sum, mean, rstd, x, branch, gamma, beta;
  double eps = 0;
  Dropout dropout = {};
  Tensor step;
  std::optional<ThinProduct> thin = {};
  struct Before {
    Tensor mean, rstd, gamma, beta;  // (T), (T), (D), (D); mean and beta empty: of RMS norm
    static void tensors(auto& b, auto& see) { see.in(b.mean, b.rstd, b.gamma, b.beta); }
  };
  std::optional<Before> before = {};
  Dropout after = {};
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    if (a.thin) see.out(a.sum);
    if (a.branch) see.in_place(a.sum);
    see.out(a.mean, a.rstd);
    see.in(a.x, a.branch, a.gamma, a.beta);
    if (a.thin) ThinProduct::tensors(*a.thin, see);
    if (a.before) Before::tensors(*a.before, see);
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const { return {thin ? thin->flops(x) : 0, 0, bytes}; }
};

// dsum (T, D) = gradient of sum (= of x); dbranch = dropout(dsum), not written when empty; dgamma, dbeta (D) "=".
// `mean` and `dbeta` empty: of RMS norm. dsum may be dy, and dbranch the sum.
// thin: the gradient of y is dy + this product; dsum must not be the sum then. after: as in forward. onward: a product of dbranch, with
// which backward of the branch begins.
struct NormBackward {
  static constexpr const char* name = "norm_backward";
  static constexpr bool large_workspace = true;
  Tensor dsum, dbranch, dgamma, dbeta, dy, sum, mean, rstd, gamma;
  Dropout dropout = {};
  Tensor step;
  std::optional<ThinProduct> thin = {};
  Dropout after = {};
  struct Onward {
    Mat u, r;  // u (T, A) = dbranch r^T, with r (A, D)
  };
  std::optional<Onward> onward = {};
  static void tensors(auto& a, auto& see) {
    see.in_place(a.dsum, a.dbranch);
    see.out(a.dgamma, a.dbeta);
    see.in(a.dy, a.sum, a.mean, a.rstd, a.gamma);
    if (a.thin) ThinProduct::tensors(*a.thin, see);
    if (a.onward) {
      see.out(a.onward->u);
      see.in(a.onward->r);
    }
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

#define COMERA_NORM_OPS(OP) OP(NormForward) OP(NormBackward)

}  // namespace comera
