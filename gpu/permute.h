// Axis permutation: copies runs if the fastest axis stays, else transposes tiles.
#pragma once
#include "core/ops/permute_axes.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// Element i of y, in rows of `width`; `axes` are the slower axes.
template <class T>
struct PermuteRuns {
  T* y;
  const T* x;
  PermuteAxes axes;
  int64_t width;
  KERNEL void operator()(int64_t i) const {
    const PermuteAxes::Offsets at = axes.offsets(i / width);
    y[at.y + i % width] = x[at.x + i % width];
  }
};

// For each entry of `axes` the transposition y[r * y_step + c] = x[c * x_step + r], by tiles in shared memory, so that reads and
// writes are coalesced.
template <class T>
struct PermuteTiles {
  static constexpr int kTile = 32, kRow = kTile + 1;  // 1 more: a column must not lie in one memory bank
  T* y;
  const T* x;
  PermuteAxes axes;
  int64_t height, width, y_step, x_step, entries;

  HD int64_t tiles_down() const { return ceil_div(height, kTile); }
  HD int64_t tiles_across() const { return ceil_div(width, kTile); }
  HD int64_t items() const { return entries * tiles_down() * tiles_across(); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    T* tile = g.template shared<T>();
    for (int64_t item = g.block(); item < items(); item += g.blocks()) {
      const PermuteAxes::Offsets at = axes.offsets(item / (tiles_down() * tiles_across()));
      const int64_t row = item / tiles_across() % tiles_down() * kTile, column = item % tiles_across() * kTile;
      const int rows = static_cast<int>(height - row < kTile ? height - row : kTile);
      const int columns = static_cast<int>(width - column < kTile ? width - column : kTile);
      for (int i = g.thread(); i < kTile * kTile; i += g.threads()) {
        const int r = i % kTile, c = i / kTile;  // r is fastest in x
        if (r < rows && c < columns) tile[r * kRow + c] = x[at.x + (column + c) * x_step + row + r];
      }
      g.sync();
      for (int i = g.thread(); i < kTile * kTile; i += g.threads()) {
        const int r = i / kTile, c = i % kTile;
        if (r < rows && c < columns) y[at.y + (row + r) * y_step + column + c] = tile[r * kRow + c];
      }
      g.sync();  // before the next item overwrites the tile
    }
  }
};

template <class M>
void GpuOps<M>::body(const op::Permute& args) {
  begin(args, args.x.shape());
  if (args.y.count() == 0) return;
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    PermuteAxes axes(args.y.shape(), args.x.shape(), args.axes);
    if (axes.rank == 0) return machine_.copy(args.y.raw(), args.x.raw(), args.y.bytes());  // one element
    const auto [width, one, step] = axes.take(axes.rank - 1);                              // y's fastest axis
    if (step == 1) return each(args.y.count(), PermuteRuns<T>{args.y.data<T>(), args.x.data<T>(), axes, width});
    int fastest = 0;  // x's fastest axis is another of y's
    while (axes.in_x[fastest] != 1) ++fastest;
    const auto [height, y_step, x_one] = axes.take(fastest);
    using Tiles = PermuteTiles<T>;
    const Tiles tiles{args.y.data<T>(), args.x.data<T>(), axes, height, width, y_step, step, axes.count()};
    machine_.launch(over_items(tiles.items(), kBlock, Tiles::kTile * Tiles::kRow * int64_t{sizeof(T)}), tiles);
  });
}

}  // namespace comera::gpu
