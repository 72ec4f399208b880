// Linear algebra, between the two programs of a step.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// The leading `rank` singular directions of g (m, n): left = columns of U as basis (m, rank), else rows of V^T as
// basis (rank, n). Signs fixed: the largest |entry| of each vector is positive. Where g is not finite the
// basis stays as it is, so no step has to look at g first. Host or device, never captured.
struct SingularBasis {
  static constexpr const char* name = "singular_basis";
  static constexpr bool never_captured = true;
  static constexpr bool large_workspace = true;
  Tensor basis, g;
  bool left = true;
  static void tensors(auto& a, auto& see) {
    see.out(a.basis);
    see.in(a.g);
  }
  void check() const;
};

}  // namespace op

#define COMERA_LINALG_OPS(OP) OP(SingularBasis)

}  // namespace comera
