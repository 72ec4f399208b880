// Patches of images and pooling (METHODS.md 21). Letters: B images, P pixels and Q windows of one, C channels, A places in a window. All
// rows of an image stand one after another.
#pragma once
#include "core/ops/op.h"
#include "core/ops/window.h"

namespace comera {
namespace op {

// y (B Q, A C): the pixels of each window of x (B P, C), place by place, 0 in the padding.
struct Unfold {
  static constexpr const char* name = "unfold";
  Tensor y, x;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x);
  }
  void check() const;
};
// The adjoint: dx (B P, C) = sum over the windows on a pixel of their dy (B Q, A C) at its place.
struct Fold {
  static constexpr const char* name = "fold";
  Tensor dx, dy;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.dx);
    see.in(a.dy);
  }
  void check() const;
};

// y (B Q, C): the largest pixel of each window of x (B P, C), the first of equal ones; a NaN wins. place (B Q, C), u8: where it is in its
// window, of 256 places at most; may be empty. The padding is never the largest.
struct MaxPool {
  static constexpr const char* name = "max_pool";
  Tensor y, place, x;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.y, a.place);
    see.in(a.x);
  }
  void check() const;
};
// dx (B P, C) from dy (B Q, C).
struct MaxPoolBackward {
  static constexpr const char* name = "max_pool_backward";
  Tensor dx, dy, place;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.dx);
    see.in(a.dy, a.place);
  }
  void check() const;
};
// y (B Q, C): sum of each window's pixels of x (B P, C) / A, so the padding counts as zeros.
struct AveragePool {
  static constexpr const char* name = "average_pool";
  Tensor y, x;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x);
  }
  void check() const;
};
// dx (B P, C) from dy (B Q, C).
struct AveragePoolBackward {
  static constexpr const char* name = "average_pool_backward";
  Tensor dx, dy;
  Window window = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.dx);
    see.in(a.dy);
  }
  void check() const;
};

}  // namespace op

#define COMERA_IMAGE_OPS(OP) OP(Unfold) OP(Fold) OP(MaxPool) OP(MaxPoolBackward) OP(AveragePool) OP(AveragePoolBackward)

}  // namespace comera
