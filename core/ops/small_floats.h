// Floats of fewer bits than f32, written once for the CPU loops and the CUDA kernels. Rounding is to nearest, ties to even.
// TF32: an f32 with 10 bits behind the point, whose ties go away from zero, as the tensor cores' conversion has it.
// bf16: the upper half of an f32, so 8 bits of precision and the same range.
// E4M3: 1 sign, 4 exponent, 3 mantissa bits, no infinity, one NaN a sign; largest 448, smallest 2^-9.
#pragma once
#include "core/ops/fast_math.h"

namespace comera {

HD uint16_t bf16_of(float x) {
  const uint32_t bits = fast::bits_of(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // of the largest f32: infinity
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(x != x ? quiet : rounded);
}
// The neighbour above or below, by a word that is uniform over 32 bits: x on average, and x itself where it is one of them.
HD uint16_t bf16_at_random(float x, uint32_t word) {
  return x != x ? bf16_of(x) : static_cast<uint16_t>((fast::bits_of(x) + (word >> 16)) >> 16);
}
HD float from_bf16(uint16_t code) { return fast::float_of(static_cast<uint32_t>(code) << 16); }

HD float tf32_of(float x) {
#ifdef __CUDA_ARCH__
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return fast::float_of(bits);
#else
  return x != x ? x : fast::float_of((fast::bits_of(x) + 0x1000u) & 0xffffe000u);
#endif
}

inline constexpr float kLargestE4m3 = 448;

// Beyond +-448: +-448.
HD uint8_t e4m3_of(float x) {
  const uint32_t bits = fast::bits_of(x), sign = bits >> 24 & 0x80u;
  const float size = fast::float_of(bits & 0x7fffffffu);
  uint32_t code;
  if (size != size)
    code = 0x7f;
  else if (size >= kLargestE4m3)
    code = 0x7e;
  else if (size < 0.015625f)  // 2^-6: equal steps of 2^-9 from here to 0
    code = fast::bits_of(size * 512.0f + fast::kRound) - fast::bits_of(fast::kRound);
  else
    code = ((fast::bits_of(size) + 0x7ffffu + (fast::bits_of(size) >> 20 & 1u)) >> 20) - (120u << 3);
  return static_cast<uint8_t>(sign | code);
}
HD float from_e4m3(uint8_t code) {
  const uint32_t exponent = code >> 3 & 15u, mantissa = code & 7u;
  float size;
  if ((code & 0x7f) == 0x7f)
    size = fast::float_of(0x7fc00000u);
  else if (exponent == 0)
    size = static_cast<float>(mantissa) * 0.001953125f;
  else
    size = fast::float_of((exponent + 120u) << 23 | mantissa << 20);
  return code & 0x80 ? -size : size;
}

// What a tensor is multiplied by before E4M3, so that its largest entry becomes 448; what is all 0 is left as it is.
HD float e4m3_scale(float largest) { return largest > 0 ? kLargestE4m3 / largest : 1.0f; }

}  // namespace comera
