// The dot interaction of recommendation models (METHODS.md 20.2): a thread an output.
#pragma once
#include "core/ops/interaction.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

template <class T>
struct DotInteraction {
  DotPairs pairs;
  int64_t width, columns;
  const T* z;
  T* y;
  KERNEL void operator()(int64_t n) const {
    const int64_t column = n % columns, pair = column - width;
    const T* of_example = z + n / columns * pairs.vectors * width;
    if (pair < 0) {
      y[n] = of_example[column];
      return;
    }
    int64_t i = 0;
    while (pairs.first(i + 1) <= pair) ++i;
    const T *a = of_example + i * width, *b = of_example + (pair - pairs.first(i)) * width;
    T sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += a[c] * b[c];
    y[n] = sum;
  }
};

template <class T>
struct DotInteractionBackward {
  DotPairs pairs;
  int64_t width, columns;
  const T *dy, *z;
  T* dz;
  KERNEL void operator()(int64_t n) const {
    const int64_t c = n % width, vector = n / width, i = vector % pairs.vectors, s = vector / pairs.vectors;
    const T *of_y = dy + s * columns, *of_z = z + s * pairs.vectors * width;
    T sum = i == 0 ? of_y[c] : T(0);
    for (int64_t j = 0; j < pairs.vectors; ++j) sum += pairs.of(of_y + width, i, j) * of_z[j * width + c];
    dz[n] = sum;
  }
};

template <class M>
void GpuOps<M>::body(const op::DotInteraction& args) {
  begin(args, args.z.shape());
  by_float_type(args.z, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(),
         DotInteraction<T>{{args.z.size(1), args.itself}, args.z.size(2), args.y.size(1), args.z.data<T>(), args.y.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::DotInteractionBackward& args) {
  begin(args, args.z.shape());
  by_float_type(args.z, [&](auto type) {
    using T = decltype(type);
    each(args.dz.count(),
         DotInteractionBackward<T>{
             {args.z.size(1), args.itself}, args.z.size(2), args.dy.size(1), args.dy.data<T>(), args.z.data<T>(), args.dz.data<T>()});
  });
}

}  // namespace comera::gpu
