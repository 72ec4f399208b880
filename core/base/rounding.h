// Rounding up.
#pragma once
#include <type_traits>

#include "core/base/hd.h"

namespace comera {

// count / size rounded up. count >= 0, size > 0.
template <class T>
HD constexpr T ceil_div(T count, std::type_identity_t<T> size) {
  return count / size + (count % size != 0);
}
// `count` rounded up to a multiple of `size`.
template <class T>
HD constexpr T round_up(T count, std::type_identity_t<T> size) {
  return ceil_div(count, size) * size;
}

}  // namespace comera
