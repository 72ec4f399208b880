#include "core/tensor/half.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace comera {
float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu, bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  }
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

uint16_t to_half(float x) {
  const uint32_t sign = std::bit_cast<uint32_t>(x) >> 16 & 0x8000, bits = std::bit_cast<uint32_t>(x) & 0x7fffffff;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00);
  if (bits >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // from 65520 on: infinity
  if (bits < 0x38800000)                                                // below 2^-14: multiples of 2^-24, which adding 0.5 rounds to
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::fabs(x) + 0.5f) - std::bit_cast<uint32_t>(0.5f)));
  return static_cast<uint16_t>(sign | ((bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13));
}

}  // namespace comera
