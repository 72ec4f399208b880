// Copies, element-wise ops, permutations, sums over rows.
#pragma once
#include <initializer_list>

#include "core/ops/op.h"

namespace comera {

enum class Activation : int { gelu, gelu_tanh, silu, tanh, relu };  // gelu: the exact (erf) form; gelu_tanh: its approximation by tanh

// Which axis of the source each axis of the result is; no heap, so a steady step allocates nothing.
class AxisOrder {
 public:
  AxisOrder(std::initializer_list<int> axes) : AxisOrder(axes.begin(), axes.size()) {}
  AxisOrder(const std::vector<int>& axes) : AxisOrder(axes.data(), axes.size()) {}
  size_t size() const { return size_; }
  int operator[](size_t i) const { return axes_[i]; }
  const int* begin() const { return axes_; }
  const int* end() const { return axes_ + size_; }

 private:
  AxisOrder(const int* axes, size_t size) : size_(size) {
    CHECK(size <= Shape::kMaxRank, size << " axes");
    for (size_t i = 0; i < size; ++i) axes_[i] = axes[i];
  }
  int axes_[Shape::kMaxRank] = {};
  size_t size_ = 0;
};

struct CopyArgs {  // some columns of wide matrices, too
  Mat y, x;
  static void tensors(auto& p, auto& see) {
    see.out(p.y);
    see.in(p.x);
  }
};

namespace op {

struct Fill {  // =
  static constexpr const char* name = "fill";
  Mat y;
  double value = 0;
  static void tensors(auto& a, auto& see) { see.out(a.y); }
  void check() const;
};
struct Copy {  // =, same count and dtype
  static constexpr const char* name = "copy";
  Tensor y, x;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x);
  }
  void check() const;
};
// Float matrices of one dtype, y and x of the same rows and columns: one kernel, where batched.
struct Copies {
  static constexpr const char* name = "copy";
  Items<CopyArgs> all;
  static void tensors(auto& a, auto& see) { see.items(a.all); }
  void check() const;
};
struct Add {  // y = a + b; y may be a or b
  static constexpr const char* name = "add";
  Tensor y, a, b;
  static void tensors(auto& all, auto& see) {
    see.in_place(all.y);
    see.in(all.a, all.b);
  }
  void check() const;
};
struct Scale {  // y = factor x; y may be x
  static constexpr const char* name = "scale";
  Tensor y, x;
  double factor = 1;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x);
  }
  void check() const;
};
struct Axpy {  // y += factor x
  static constexpr const char* name = "axpy";
  Tensor y;
  double factor = 1;
  Tensor x;
  static void tensors(auto& a, auto& see) {
    see.inout(a.y);
    see.in(a.x);
  }
  void check() const;
};
struct Permute {  // y's axis i is x's axis axes[i]
  static constexpr const char* name = "permute";
  Tensor y, x;
  AxisOrder axes;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.x);
  }
  void check() const;
};
struct BroadcastRows {  // y (T, D) = row (D) in every row
  static constexpr const char* name = "broadcast_rows";
  Tensor y, row;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.in(a.row);
  }
  void check() const;
};
struct ColumnSum {  // sum (D) = sum over rows of x (T, D)
  static constexpr const char* name = "column_sum";
  Tensor sum, x;
  static void tensors(auto& a, auto& see) {
    see.out(a.sum);
    see.in(a.x);
  }
  void check() const;
};
struct ActivationForward {
  static constexpr const char* name = "activation_forward";
  Activation kind = Activation::gelu;
  Tensor y, x;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x);
  }
  void check() const;
};
// dx = dy * f'(.). `saved` is x, but y for tanh. dx may be dy.
struct ActivationBackward {
  static constexpr const char* name = "activation_backward";
  Activation kind = Activation::gelu;
  Tensor dx, dy, saved;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.dx);
    see.in(a.dy, a.saved);
  }
  void check() const;
};
void check_gated(const char* op, Activation kind);  // f is one of those whose backward reads x
// y = f(x) * gate, as in SwiGLU, whose f is silu (METHODS.md 19.3). y may be x or gate. f is one of those whose backward reads x.
struct GatedForward {
  static constexpr const char* name = "gated_forward";
  Activation kind = Activation::silu;
  Tensor y, x, gate;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x, a.gate);
  }
  void check() const;
};
// dx = dy gate f'(x), dgate = dy f(x). dx or dgate may be dy, x or gate, which are all read before.
struct GatedBackward {
  static constexpr const char* name = "gated_backward";
  Activation kind = Activation::silu;
  Tensor dx, dgate, dy, x, gate;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.dx, a.dgate);
    see.in(a.dy, a.x, a.gate);
  }
  void check() const;
};
// y = x * mask / (1 - p); its own backward (dx from dy). y may be x.
struct ApplyDropout {
  static constexpr const char* name = "dropout";
  Tensor y, x;
  Dropout dropout = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x);
    see.step(a.step);
  }
  void check() const;
};
// y = the square of x, or its square root; y may be x.
struct Square {
  static constexpr const char* name = "square";
  Tensor y, x;
  bool root = false;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x);
  }
  void check() const;
};
// y = scale times normal draws of mean 0 and variance 1: words 2 i and 2 i + 1 of (seed, step, site) give elements 2 i and 2 i + 1. The
// draws change every `gap` steps, counted from step 1; the steps between draw the same again. `ahead`: draws of the step so many steps
// later.
struct Normal {
  static constexpr const char* name = "normal";
  Tensor y;
  uint32_t site = 0;
  Tensor step;
  double scale = 1;
  int64_t gap = 1, ahead = 0;
  static void tensors(auto& a, auto& see) {
    see.out(a.y);
    see.step(a.step);
  }
  void check() const;
};

}  // namespace op

// clang-format off
#define COMERA_POINTWISE_OPS(OP)                                                \
  OP(Fill) OP(Copy) OP(Copies) OP(Add) OP(Scale) OP(Axpy) OP(Permute)           \
  OP(BroadcastRows) OP(ColumnSum) OP(ActivationForward) OP(ActivationBackward)  \
  OP(GatedForward) OP(GatedBackward) OP(ApplyDropout) OP(Square) OP(Normal)
// clang-format on

}  // namespace comera
