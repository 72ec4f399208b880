// Exchange of axes as copies of runs where the fastest axis stays, else as transposed tiles.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

// y's axes, slowest first: sizes, and what a step along each is in y and in x.
struct Axes {
  int rank = 0;
  int64_t size[Shape::kMaxRank], in_y[Shape::kMaxRank], in_x[Shape::kMaxRank];

  Axes(const Shape& y, const Shape& x, const AxisOrder& axes) {
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
  // Takes out an axis and returns its (size, step in y, step in x).
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
  // Offsets in y and x of entry `index` of the axes that are left.
  std::pair<int64_t, int64_t> offsets(int64_t index) const {
    int64_t y = 0, x = 0;
    for (int axis = rank - 1; axis >= 0; index /= size[axis--]) {
      y += index % size[axis] * in_y[axis];
      x += index % size[axis] * in_x[axis];
    }
    return {y, x};
  }
};

template <class T>
void permute_axes(ThreadPool& pool, T* y, const T* x, Axes axes) {
  if (axes.rank == 0) {
    y[0] = x[0];
    return;
  }
  const auto [width, one, step] = axes.take(axes.rank - 1);  // y's fastest axis
  (void)one;
  if (step == 1) {
    pool.parallel_for(axes.count(), kElementGrain / width + 1, [&, width = width](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [to, from] = axes.offsets(i);
        std::memcpy(y + to, x + from, static_cast<size_t>(width) * sizeof(T));
      }
    });
    return;
  }
  int fastest = 0;  // x's fastest axis is another of y's
  while (axes.in_x[fastest] != 1) ++fastest;
  const auto [height, y_step, x_one] = axes.take(fastest);
  (void)x_one;
  constexpr int64_t kTile = 16;  // lines of 64 bytes of floats, read and written whole
  const int64_t tiles = (height + kTile - 1) / kTile;
  pool.parallel_for(axes.count() * tiles, kElementGrain / (width * kTile) + 1,
                    [&, width = width, step = step, height = height, y_step = y_step](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto [to, from] = axes.offsets(i / tiles);
      const int64_t row_begin = i % tiles * kTile, row_end = std::min(height, row_begin + kTile);
      for (int64_t column = 0; column < width; column += kTile)
        for (int64_t r = row_begin; r < row_end; ++r)
          for (int64_t c = column; c < std::min(width, column + kTile); ++c) y[to + r * y_step + c] = x[from + c * step + r];
    }
  });
}

}  // namespace

void CpuOps::do_permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) {
  if (y.count() == 0) return;
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    permute_axes(pool_, y.data<T>(), x.data<T>(), Axes(y.shape(), x.shape(), axes));
  });
}

}  // namespace comera
