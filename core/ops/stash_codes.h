// Tensors in fewer bits: activations in int8 (METHODS.md 12), activations and weights (METHODS.md 18) in bf16.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// x (T, D), features in `groups` equal groups. range (groups, 2): running alpha (width) and beta (minimum), updated
// with decay (first use: range[g,0] < 0); used (groups, 2): the pair this call used. codes u8 (T, D), stochastic rounding.
struct Int8Keep {
  static constexpr const char* name = "int8_keep";
  Tensor codes, used, range, x;
  int64_t groups = 1;
  double decay = 0;
  uint32_t site = 0;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.out(a.codes, a.used);
    see.inout(a.range);
    see.in(a.x);
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const;
};
struct Int8Load {
  static constexpr const char* name = "int8_load";
  Tensor x, codes, used;
  int64_t groups = 1;
  static void tensors(auto& a, auto& see) {
    see.out(a.x);
    see.in(a.codes, a.used);
  }
  void check() const;
};
// codes (bf16) = x rounded to nearest, ties to even, or with `step` up or down at random, so that x is the mean; and back, exactly. Any
// shape, both of one.
struct Bf16Keep {
  static constexpr const char* name = "bf16_keep";
  Tensor codes, x;
  uint32_t site = 0;  // entry i is rounded by word i of (seed, step, site)
  Tensor step = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.codes);
    see.in(a.x);
    see.step(a.step);
  }
  void check() const;
};
struct Bf16Load {
  static constexpr const char* name = "bf16_load";
  Tensor x, codes;
  static void tensors(auto& a, auto& see) {
    see.out(a.x);
    see.in(a.codes);
  }
  void check() const;
};

}  // namespace op

#define COMERA_STASH_OPS(OP) OP(Int8Keep) OP(Int8Load) OP(Bf16Keep) OP(Bf16Load)

}  // namespace comera
