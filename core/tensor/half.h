// Numbers of IEEE 754 binary16 (F16).
#pragma once
#include <cstdint>

namespace comera {

float from_half(uint16_t half);
uint16_t to_half(float x);  // the nearest number, of two the even one; from 65520 on infinity; NaN stays NaN

}  // namespace comera
