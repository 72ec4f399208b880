// Rotary positions (METHODS.md 19.2): the angle of feature i of a head, in double for every type, so that late positions keep their digits.
#pragma once
#include "core/ops/pointwise_math.h"

namespace comera {

// cos and sin of position * theta^(-2 i / width), 0 <= i < width / 2.
struct RotaryAngles {
  double log_theta, width;

  RotaryAngles(double theta, int64_t width) : log_theta(std::log(theta)), width(static_cast<double>(width)) {}
  HD Turn operator()(int position, int64_t i) const {
    const double turns = position * fast::exp(-2 * static_cast<double>(i) / width * log_theta) * 0.15915494309189533577;
    return Turn(turns - std::floor(turns));
  }
};

// The pair (a, b) turned by an angle; the other way where `back`.
template <class T>
struct Rotated {
  T a, b;
  HD Rotated(T x, T y, T cos, T sin, bool back) : a(x * cos - (back ? -sin : sin) * y), b(y * cos + (back ? -sin : sin) * x) {}
};

}  // namespace comera
