// Rounding up: counts of pieces, and sizes that are whole pieces.
#pragma once
#include <type_traits>

#include "core/base/hd.h"

namespace comera {

// Pieces of `size` that hold `count`, the last one perhaps not full. count >= 0, size > 0.
template <class T>
HD constexpr T pieces_of(T count, std::type_identity_t<T> size) {
  return count / size + (count % size != 0);
}
// `count` rounded up to a multiple of `size`.
template <class T>
HD constexpr T whole_pieces(T count, std::type_identity_t<T> size) {
  return pieces_of(count, size) * size;
}

}  // namespace comera
