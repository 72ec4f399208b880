// Sums and maxima over a row in a fixed number of interleaved partial results: the loop then runs in vector
// registers although floating-point addition may not be reordered, and the result is the same everywhere.
#pragma once
#include <cstdint>

namespace comera {

// Sum over i < n of term(i), where term is a plain expression of row elements. kTerms sums at once share the loop:
// term(i, out) writes kTerms values.
template <class T>
struct Lanes {
  static constexpr int kCount = 64;
  typedef T Vector __attribute__((vector_size(kCount * sizeof(T))));
};

// The loops are written over a block of 64 lanes: GCC keeps `lane` in registers when its size is fixed.
template <class T, class Term>
T lane_sum(int64_t n, const Term& term) {
  constexpr int kLanes = 64;
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] += term(i + j);
  for (int j = 0; i < n; ++i, ++j) lane[j] += term(i);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

}  // namespace comera
