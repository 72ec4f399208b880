// Sums and maxima over a row in a fixed number of interleaved partial results: the loop runs in vector registers
// although floating-point additions may not be reordered, and the result is the same for any number of threads.
#pragma once
#include <cstdint>

namespace comera {

template <class T>
struct Row {
  static constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));
  typedef T Vector __attribute__((vector_size(64)));
};

// The element or the vector of elements at x.
template <class V, class T>
inline V at(const T* x) {
  V v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

// Sum over i < n of the terms; term(V{}, i) returns term i (V = T) or those from i on (V = Row<T>::Vector).
template <class T, class Term>
inline T row_sum(int64_t n, const Term& term) {
  using V = typename Row<T>::Vector;
  constexpr int64_t kLanes = Row<T>::kLanes;
  V a{}, b{}, c{}, d{};  // four chains hide the latency of an addition
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a += term(V{}, i);
    b += term(V{}, i + kLanes);
    c += term(V{}, i + 2 * kLanes);
    d += term(V{}, i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) a += term(V{}, i);
  a = (a + b) + (c + d);
  T lane[kLanes], sum = 0;
  __builtin_memcpy(lane, &a, sizeof a);
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
  for (; i < n; ++i) sum += term(T{}, i);
  return lane[0] + sum;
}

// Largest of n > 0 elements; NaN is passed over.
template <class T>
inline T row_max(int64_t n, const T* x) {
  using V = typename Row<T>::Vector;
  constexpr int64_t kLanes = Row<T>::kLanes;
  T largest = x[0];
  int64_t i = 0;
  if (n >= kLanes) {
    V a = at<V>(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      const V next = at<V>(x + i);
      a = next > a ? next : a;
    }
    T lane[kLanes];
    __builtin_memcpy(lane, &a, sizeof a);
    for (T value : lane) largest = value > largest || largest != largest ? value : largest;
  }
  for (; i < n; ++i) largest = x[i] > largest || largest != largest ? x[i] : largest;
  return largest;
}

}  // namespace comera
