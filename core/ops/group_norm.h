// Norms whose mean and variance are those of groups of neighbouring channels over the rows of an example (METHODS.md 21.3). Group norm: an
// example is an image. Batch norm: all rows are one example and each channel is a group. Letters: E examples, G groups, C channels;
// x (T, C), the T / E rows of an example stand one after another. E and G are read from the shape of `mean`.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// mean (E, G), variance (E, G): mean square deviation.
struct GroupStatistics {
  static constexpr const char* name = "group_statistics";
  Tensor mean, variance, x;
  static void tensors(auto& a, auto& see) {
    see.out(a.mean, a.variance);
    see.in(a.x);
  }
  void check() const;
};
// y (T, C) = (x - mean) / sqrt(variance + eps) * gamma + beta; gamma, beta (C).
struct GroupNormForward {
  static constexpr const char* name = "group_norm_forward";
  Tensor y, x, mean, variance, gamma, beta;
  double eps = 0;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x, a.mean, a.variance, a.gamma, a.beta);
  }
  void check() const;
};
// dx (T, C), which may be dy; dgamma, dbeta (C) "=". `constant`: mean and variance do not depend on x.
struct GroupNormBackward {
  static constexpr const char* name = "group_norm_backward";
  Tensor dx, dgamma, dbeta, dy, x, mean, variance, gamma;
  double eps = 0;
  bool constant = false;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.dx);
    see.out(a.dgamma, a.dbeta);
    see.in(a.dy, a.x, a.mean, a.variance, a.gamma);
  }
  void check() const;
};

}  // namespace op

#define COMERA_GROUP_NORM_OPS(OP) OP(GroupStatistics) OP(GroupNormForward) OP(GroupNormBackward)

}  // namespace comera
