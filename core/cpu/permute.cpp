// Axis permutation: copies of runs where the fastest axis stays, else transposed tiles.
#include <algorithm>
#include <cstring>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"
#include "core/ops/permute_axes.h"

namespace comera {
namespace {

template <class T>
void permute_axes(ThreadPool& pool, T* y, const T* x, PermuteAxes axes) {
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
  const int64_t tiles = ceil_div(height, kTile);
  pool.parallel_for(axes.count() * tiles, kElementGrain / (width * kTile) + 1,
                    [&, width = width, step = step, height = height, y_step = y_step](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const auto [to, from] = axes.offsets(i / tiles);
                        const int64_t row_begin = i % tiles * kTile, row_end = std::min(height, row_begin + kTile);
                        for (int64_t column = 0; column < width; column += kTile)
                          for (int64_t r = row_begin; r < row_end; ++r)
                            for (int64_t c = column; c < std::min(width, column + kTile); ++c)
                              y[to + r * y_step + c] = x[from + c * step + r];
                      }
                    });
}

}  // namespace

void CpuOps::body(const op::Permute& args) {
  if (args.y.count() == 0) return;
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    permute_axes(pool_, args.y.data<T>(), args.x.data<T>(), PermuteAxes(args.y.shape(), args.x.shape(), args.axes));
  });
}

}  // namespace comera
