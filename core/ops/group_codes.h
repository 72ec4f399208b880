// Numbers as codes of 8 or 4 bits with a scale and a zero per group of neighbours (METHODS.md 7): weights and projections of Q-GaLore.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/base/rounding.h"
#include "core/ops/op.h"

namespace comera {

// Elements of the flattened tensor in groups of `group`; the last one may be shorter.
struct GroupCodes {
  int bits = 8;  // or 4: two elements a byte, the first in its low half
  int64_t group = 256;

  HD int64_t groups(int64_t count) const { return ceil_div(count, group); }
  HD int64_t bytes(int64_t count) const { return bits == 8 ? count : ceil_div(count, 2); }
};

// How the numbers of one group are coded: x = (code - zero) scale.
template <class T>
struct GroupRange {
  T scale = 0, zero = 0;
  static constexpr T kLeastWidth = static_cast<T>(1e-5);  // as published

  // Of numbers from `low` to `high`, which include 0: as published, the zero of a group without it is cut to the codes, and all its
  // numbers come back as others. `bad` is NaN where a number of the group is not finite: then all of the group come back as NaN.
  HD static GroupRange of(T low, T high, T bad, int bits) {
    const T most = static_cast<T>((1 << bits) - 1), width = high - low;
    GroupRange range;
    range.scale = (width > kLeastWidth ? width : kLeastWidth) / most + bad;
    range.zero = cut(std::rint(-low / range.scale), most);
    return range;
  }
  HD int code(T x, int bits) const { return static_cast<int>(cut(std::rint(x / scale) + zero, static_cast<T>((1 << bits) - 1))); }
  // x on average; u is uniform in [0, 1).
  HD int code(T x, T u, int bits) const {
    const T y = x / scale, below = std::floor(y);
    return static_cast<int>(cut(below + (u < y - below ? T(1) : T(0)) + zero, static_cast<T>((1 << bits) - 1)));
  }
  HD T number(int code) const { return (static_cast<T>(code) - zero) * scale; }

 private:
  HD static T cut(T y, T most) { return y > T(0) ? (y < most ? y : most) : T(0); }  // 0 for NaN
};

// Code of element i, as stored.
HD int group_code_at(const uint8_t* codes, int bits, int64_t i) { return bits == 8 ? codes[i] : (codes[i / 2] >> (i % 2 * 4)) & 15; }

namespace op {

// codes u8 (bytes), scale and zero (groups), floats of x's type, from x of any shape. Each group has the scale of its own range. Zero
// bytes everywhere are zeros. `site` not 0: stochastic rounding by word i of (seed, step, site); else to the nearest code, and `step` may
// be left out.
struct GroupQuantise {
  static constexpr const char* name = "group_quantise";
  Tensor codes, scale, zero, x;
  GroupCodes how = {};
  uint32_t site = 0;
  Tensor step = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.codes, a.scale, a.zero);
    see.in(a.x);
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const;
};
struct GroupDequantise {
  static constexpr const char* name = "group_dequantise";
  Tensor x, codes, scale, zero;
  GroupCodes how = {};
  static void tensors(auto& a, auto& see) {
    see.out(a.x);
    see.in(a.codes, a.scale, a.zero);
  }
  void check() const;
};

}  // namespace op

#define COMERA_GROUP_CODE_OPS(OP) OP(GroupQuantise) OP(GroupDequantise)

}  // namespace comera
