// Layer norm and RMS norm, with the residual branch folded in.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// sum = x + dropout(branch); y = (sum - mean) * rstd * gamma + beta. x, branch, sum, y (T, D); mean, rstd (T).
// `branch` empty: plain norm, sum is not written and may be empty. `mean` and `beta` empty: RMS norm, y = sum * rstd * gamma with
// rstd = 1 / sqrt(mean(sum^2) + eps). `sum` may be `branch`, and y may be x.
struct NormForward {
  static constexpr const char* name = "norm_forward";
  Tensor y, sum, mean, rstd, x, branch, gamma, beta;
  double eps = 0;
  Dropout dropout = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    if (a.branch) see.in_place(a.sum);
    see.out(a.mean, a.rstd);
    see.in(a.x, a.branch, a.gamma, a.beta);
    see.step(a.step);
  }
  void check() const;
};

// dsum (T, D) = gradient of sum (= of x); dbranch = dropout(dsum), not written when empty; dgamma, dbeta (D) "=".
// `mean` and `dbeta` empty: of RMS norm. dsum may be dy, and dbranch the sum.
struct NormBackward {
  static constexpr const char* name = "norm_backward";
  Tensor dsum, dbranch, dgamma, dbeta, dy, sum, mean, rstd, gamma;
  Dropout dropout = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.dsum, a.dbranch);
    see.out(a.dgamma, a.dbeta);
    see.in(a.dy, a.sum, a.mean, a.rstd, a.gamma);
    see.step(a.step);
  }
  void check() const;
};

}  // namespace op

#define COMERA_NORM_OPS(OP) OP(NormForward) OP(NormBackward)

}  // namespace comera
