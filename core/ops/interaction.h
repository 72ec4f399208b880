// The dot interaction of recommendation models (METHODS.md 20.2). Letters: S examples, F vectors of an example, D their features.
#pragma once
#include "core/base/hd.h"
#include "core/ops/op.h"

namespace comera {

// The pairs i, j < i of F vectors, or with `itself` j <= i: i = 0, 1, ..., and for each j = 0, 1, ...
struct DotPairs {
  int64_t vectors;
  bool itself;
  HD int64_t count() const { return first(vectors); }
  HD int64_t first(int64_t i) const { return itself ? i * (i + 1) / 2 : i * (i - 1) / 2; }  // of the pairs of i

  // What z_i gets of z_j, by the gradients of the products.
  template <class T>
  HD T of(const T* gradients, int64_t i, int64_t j) const {
    if (i == j) return itself ? 2 * gradients[first(i) + i] : T(0);
    return i > j ? gradients[first(i) + j] : gradients[first(j) + i];
  }
};

namespace op {

struct DotInteraction {  // y (S, D + pairs): the first vector of z (S, F, D), then z_i . z_j of each pair
  static constexpr const char* name = "dot_interaction";
  Tensor y, z;
  bool itself = false;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.z);
  }
  void check() const;
  Work work(double bytes) const;
};
struct DotInteractionBackward {  // dz (S, F, D) "="
  static constexpr const char* name = "dot_interaction_backward";
  Tensor dz, dy, z;
  bool itself = false;
  static void tensors(auto& a, auto& see) {
    see.out(a.dz);
    see.in(a.dy, a.z);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

#define COMERA_INTERACTION_OPS(OP) OP(DotInteraction) OP(DotInteractionBackward)

}  // namespace comera
