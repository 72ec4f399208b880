// Numbers in bytes, written once for the CPU loops and the CUDA kernels: the two maps of the 8-bit moments
// (METHODS.md 13) and the stochastic rounding of the int8 stash (METHODS.md 12).
#pragma once
#include "core/base/hd.h"

namespace comera {

inline constexpr int kQuantBlock = 256;       // elements of the flattened tensor that share one absmax
inline constexpr int kQuantSignedZero = 127;  // code of 0 in the signed map
HD int quant_zero(bool is_signed) { return is_signed ? kQuantSignedZero : 0; }

// 256 ascending values in [-1, 1]. `border[k]` lies half way between value k and k + 1.
struct QuantMap {
  float value[256];
  float border[255];
};

// Decade e = 0..6 holds the midpoints of an even split of [.1, 1], times 10^(e-6), into 2^e cells with both signs
// (signed), or 2^(e+1) cells (unsigned: v is never negative); and 0 and 1. There is a +1 but no -1.
inline QuantMap make_quant_map(bool is_signed) {
  QuantMap map;
  int at = is_signed ? kQuantSignedZero : 0;  // place of 0; the values above it ascend
  map.value[at++] = 0;
  double decade = 1e-6;
  for (int e = 0; e < 7; ++e, decade *= 10) {
    const int cells = 1 << (is_signed ? e : e + 1);
    for (int cell = 0; cell < cells; ++cell) map.value[at++] = static_cast<float>((0.1 + 0.9 * (cell + 0.5) / cells) * decade);
  }
  map.value[at] = 1;
  if (is_signed)
    for (int k = 0; k < kQuantSignedZero; ++k) map.value[k] = -map.value[2 * kQuantSignedZero - k];
  for (int k = 0; k < 255; ++k) map.border[k] = 0.5f * (map.value[k] + map.value[k + 1]);
  return map;
}

// Code of the nearest value: the number of borders under x. NaN gives 0.
HD int quant_code(const float* border, float x) {
  int code = 0;
  for (int bit = 128; bit > 0; bit >>= 1) code += x > border[code + bit - 1] ? bit : 0;
  return code;
}

// Numbers whose code must not be that of 0: a negative one gets the next code below it (first moments), a positive one the next above it.
enum class NeverZero : unsigned char { none, negative, positive };

// `zero` is the map's code of 0.
HD int guarded_code(NeverZero never, int zero, int code, float x) {
  if (never == NeverZero::negative && x < 0 && code >= zero) return zero - 1;
  if (never == NeverZero::positive && x > 0 && code <= zero) return zero + 1;
  return code;
}

// ---- int8 stash -----------------------------------------------------------------------------------------------
// A group that is constant has width 0; this stands in for it when dividing.
inline constexpr float kStashMinWidth = 1e-30f;

// floor(y + u), u uniform in [0, 1): on average y. y = (x - beta) 255 / alpha, and the code is held to [0, 255]: a range
// that lags behind the data would else wrap to small codes, and 255 + u may round up to 256.
template <class T>
HD int stash_code(T x, T beta, T codes_per_unit, T u) {
  T y = (x - beta) * codes_per_unit;
  y = (y > T(0) ? y : T(0)) + u;  // 0 for NaN too
  return static_cast<int>(y < T(255) ? y : T(255));
}

}  // namespace comera
