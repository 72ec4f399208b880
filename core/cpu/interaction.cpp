// The dot interaction of recommendation models (METHODS.md 20.2).
#include <algorithm>
#include <cstring>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

// Examples of one thread's turn.
int64_t grain_of(const Tensor& z, bool itself) {
  return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, z.size(2) * DotPairs{z.size(1), itself}.count()));
}

}  // namespace

void CpuOps::body(const op::DotInteraction& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const int64_t vectors = args.z.size(1), width = args.z.size(2), columns = args.y.size(1);
    const T* from = args.z.data<T>();
    T* to = args.y.data<T>();
    const DotPairs pairs{vectors, args.itself};
    pool_.parallel_for(args.z.size(0), grain_of(args.z, args.itself), [=](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const T* z = from + s * vectors * width;
        T *y = to + s * columns, *dots = y + width;
        std::memcpy(y, z, static_cast<size_t>(width) * sizeof(T));
        for (int64_t i = 0; i < vectors; ++i)
          for (int64_t j = 0; j < i + pairs.itself; ++j) {
            const T *a = z + i * width, *b = z + j * width;
            dots[pairs.first(i) + j] =
                row_sum<T>(width, [=](auto kind, int64_t c) { return at<decltype(kind)>(a + c) * at<decltype(kind)>(b + c); });
          }
      }
    });
  });
}

void CpuOps::body(const op::DotInteractionBackward& args) {
  by_float_type(args.dz, [&](auto type) {
    using T = decltype(type);
    const int64_t vectors = args.z.size(1), width = args.z.size(2), columns = args.dy.size(1);
    const T *from = args.z.data<T>(), *gradient = args.dy.data<T>();
    T* to = args.dz.data<T>();
    const DotPairs pairs{vectors, args.itself};
    pool_.parallel_for(args.z.size(0), grain_of(args.z, args.itself), [=](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const T *z = from + s * vectors * width, *dy = gradient + s * columns, *dots = dy + width;
        for (int64_t i = 0; i < vectors; ++i) {
          T* dz = to + (s * vectors + i) * width;
          if (i == 0)
            std::memcpy(dz, dy, static_cast<size_t>(width) * sizeof(T));
          else
            std::fill(dz, dz + width, T(0));
          for (int64_t j = 0; j < vectors; ++j) {
            const T factor = pairs.of(dots, i, j);
            const T* other = z + j * width;
            for (int64_t c = 0; c < width; ++c) dz[c] += factor * other[c];
          }
        }
      }
    });
  });
}

}  // namespace comera
