// Sizes and strides of an axis permutation; axes that stay neighbours are merged. For the CPU and the CUDA bodies.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/hd.h"
#include "core/ops/pointwise.h"

namespace comera {

// y's axes, slowest first: sizes, and strides in y and in x.
struct PermuteAxes {
  int rank = 0;
  int64_t size[Shape::kMaxRank] = {}, in_y[Shape::kMaxRank] = {}, in_x[Shape::kMaxRank] = {};

  PermuteAxes(const Shape& y, const Shape& x, const AxisOrder& axes) {
    int64_t x_step[Shape::kMaxRank], step = 1;
    for (int axis = x.rank() - 1; axis >= 0; step *= x[axis--]) x_step[axis] = step;
    for (int axis = 0; axis < y.rank(); ++axis) {
      if (y[axis] == 1) continue;
      const int64_t step_in_x = x_step[axes[static_cast<size_t>(axis)]];
      if (rank > 0 && in_x[rank - 1] == step_in_x * y[axis]) {  // neighbours in both: one axis
        size[rank - 1] *= y[axis];
        in_x[rank - 1] = step_in_x;
      } else {
        size[rank] = y[axis];
        in_x[rank++] = step_in_x;
      }
    }
    step = 1;
    for (int axis = rank - 1; axis >= 0; step *= size[axis--]) in_y[axis] = step;
  }
  // Removes an axis and returns its (size, stride in y, stride in x).
  std::array<int64_t, 3> take(int axis) {
    const std::array<int64_t, 3> taken{size[axis], in_y[axis], in_x[axis]};
    --rank;
    for (; axis < rank; ++axis) size[axis] = size[axis + 1], in_y[axis] = in_y[axis + 1], in_x[axis] = in_x[axis + 1];
    return taken;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= size[axis];
    return product;
  }
  // Offsets in y and x of entry `index` over the remaining axes.
  struct Offsets {
    int64_t y, x;
  };
  HD Offsets offsets(int64_t index) const {
    int64_t y = 0, x = 0;
    for (int axis = rank - 1; axis >= 0; index /= size[axis--]) {
      y += index % size[axis] * in_y[axis];
      x += index % size[axis] * in_x[axis];
    }
    return {y, x};
  }
};

}  // namespace comera
