// Images of PyTorch (B, C, H, W) as rows of pixels (B H W, C) and back; weights (O, I, rows, columns) as (O, rows columns I).
#pragma once
#include "tests/layers/check_layer.h"

namespace comera::layer_test {

// (n, a, b) -> (n, b, a).
inline Values swapped(const Values& values, int64_t n, int64_t a, int64_t b) {
  Values out(values.size());
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < a; ++i)
      for (int64_t j = 0; j < b; ++j) out[static_cast<size_t>((k * b + j) * a + i)] = values[static_cast<size_t>((k * a + i) * b + j)];
  return out;
}

// `shape` is PyTorch's, of 4 axes; others are left as they are.
inline Values channels_last(const Values& values, const std::vector<int64_t>& shape) {
  return shape.size() == 4 ? swapped(values, shape[0], shape[1], shape[2] * shape[3]) : values;
}
inline Values channels_first(const Values& values, const std::vector<int64_t>& shape) {
  return shape.size() == 4 ? swapped(values, shape[0], shape[2] * shape[3], shape[1]) : values;
}

}  // namespace comera::layer_test
