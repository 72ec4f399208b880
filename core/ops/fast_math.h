// exp, tanh, erf for float as straight-line polynomials: no branch and no call, so a loop over them runs in vector
// registers on the CPU and without divergence on a GPU. Relative error below 3e-7 (tests/cpu/fast_math_test.cpp),
// infinities right, NaN in NaN out. The double overloads are the library's and serve as the reference.
// The coefficients are minimax fits of the stated functions in the stated intervals (weighted Lawson iteration).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/hd.h"

namespace comera {
namespace fast {

HD uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
HD float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Adding and taking away 1.5 * 2^23 rounds to an integer, which is then in the low bits of the sum.
inline constexpr float kRound = 12582912.0f;

// 2^f for |f| <= 1/2, fit of (2^f - 1) / f.
HD float exp2_fraction(float f) {
  float p = 1.535336191e-04f;
  p = p * f + 1.339887441e-03f;
  p = p * f + 9.618437358e-03f;
  p = p * f + 5.550332471e-02f;
  p = p * f + 2.402264791e-01f;
  p = p * f + 6.931472029e-01f;
  return p * f + 1.0f;
}

// 2^y for y in [-126, 127]; the caller clamps. A GPU has a unit for it, with an error of 2^-22.
HD float exp2_normal(float y) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(y));
  return power;
#else
  const float shifted = y + kRound, f = y - (shifted - kRound);
  return float_of(bits_of(exp2_fraction(f)) + (bits_of(shifted) << 23));
#endif
}

HD float exp(float x) {
  x = x < -104.0f ? -104.0f : x;  // below: 0; written so that NaN stays
  x = x > 89.0f ? 89.0f : x;      // above: infinity
  const float shifted = x * 1.442695041f + kRound, n = shifted - kRound;
  // x - n ln 2 with ln 2 in two pieces, the first of few bits so that n times it is exact.
  const float r = (x - n * 0.693359375f) - n * -2.121944400e-4f;
  float p = 1.381446689e-03f;
  p = p * r + 8.368780415e-03f;
  p = p * r + 4.166839421e-02f;
  p = p * r + 1.666652011e-01f;
  p = p * r + 4.999999341e-01f;
  p = (p * r) * r + r + 1.0f;
  // 2^n in two factors: n reaches from -150 to 128, one float's exponent does not.
  const uint32_t whole = bits_of(shifted) - 0x4b400000u + 254;  // n + 254, from the bits of kRound
  const uint32_t half = whole >> 1;
  return p * float_of(half << 23) * float_of((whole - half) << 23);
}
HD double exp(double x) { return std::exp(x); }

HD float tanh(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = -5.704986924e-03f;  // (tanh x / x - 1) / x^2 in x^2, |x| <= 0.625
  p = p * s + 2.063908715e-02f;
  p = p * s + -5.373971505e-02f;
  p = p * s + 1.333144220e-01f;
  p = p * s + -3.333328194e-01f;
  const float near = x + x * s * p;
  const float far = 1.0f - 2.0f / (exp(2.0f * t) + 1.0f);
  return t < 0.625f ? near : std::copysign(far, x);
}
HD double tanh(double x) { return std::tanh(x); }

HD float erf(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = 8.513104772e-05f;  // erf x / x - 1 in x^2, |x| <= 0.9
  p = p * s + -8.175639468e-04f;
  p = p * s + 5.203859176e-03f;
  p = p * s + -2.686050847e-02f;
  p = p * s + 1.128371503e-01f;
  p = p * s + -3.761263498e-01f;
  p = p * s + 1.283791668e-01f;
  const float near = x + x * p;
  float q = -1.982196520e-04f;  // -ln(1 - erf t) in t, 0.9 <= t <= 4; erf is 1 in float from 3.92 on
  const float u = t > 4.0f ? 4.0f : t;
  q = q * u + 3.065490261e-03f;
  q = q * u + -2.231521285e-02f;
  q = q * u + 1.041136781e-01f;
  q = q * u + 6.369760841e-01f;
  q = q * u + 1.127797242e+00f;
  q = q * u + 1.664477733e-04f;
  const float far = 1.0f - exp2_normal(q * -1.442695041f);
  // A GPU's NaN has other bits than a processor's: exp2_normal() would make a number of it.
  return t < 0.9f ? near : t == t ? std::copysign(far, x) : x;
}
HD double erf(double x) { return std::erf(x); }

// Upper tail of the normal distribution, 1 - Phi(t) for 0 <= t; absolute error below 2e-7, times t below 1e-7.
// The fit is of its base-2 logarithm: one exponential in all. Beyond 8 the value of 8 (6e-16).
HD float normal_tail(float t) {
  const float u = t > 8.0f ? 8.0f : t;
  float q = -1.642225542e-06f;
  q = q * u + 2.513586544e-05f;
  q = q * u + -1.186075291e-04f;
  q = q * u + -3.003034378e-04f;
  q = q * u + 7.277757217e-03f;
  q = q * u + -5.264601855e-02f;
  q = q * u + -4.591576335e-01f;
  q = q * u + -1.151111584e+00f;
  q = q * u + -9.999998669e-01f;
  return exp2_normal(q);
}

}  // namespace fast
}  // namespace comera
