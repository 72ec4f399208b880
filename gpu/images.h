// Patches of images and pooling: one thread an element of the result, which adds in the order of its windows or places.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// Where element i of rows of C channels lies: its channel, and its window's (or pixel's) row, column and image.
struct ImagePlace {
  int64_t channel, row, column, image;
  HD ImagePlace(int64_t i, int64_t channels, int64_t rows, int64_t columns)
      : channel(i % channels), row(i / channels / columns % rows), column(i / channels % columns), image(i / channels / columns / rows) {}
};

// body(offset in x, place in the window) for the pixels under a window, in their order.
template <class Body>
KERNEL void each_pixel(const Window& window, const ImagePlace& at, int64_t channels, const Body& body) {
  const Span lines = window.rows_inside(at.row), across = window.columns_inside(at.column);
  for (int64_t i = lines.begin; i < lines.end; ++i) {
    const int64_t first = at.image * window.pixels() + (window.top(at.row) + i) * window.width + window.left(at.column);
    for (int64_t j = across.begin; j < across.end; ++j) body((first + j) * channels + at.channel, i * window.kernel_columns + j);
  }
}

// body(number of the window, place in it) for the windows on a pixel, in their order.
template <class Body>
KERNEL void each_window(const Window& window, const ImagePlace& at, const Body& body) {
  const Span lines = window.rows_over(at.row), across = window.columns_over(at.column);
  for (int64_t i = lines.begin; i < lines.end; ++i)
    for (int64_t j = across.begin; j < across.end; ++j)
      body(at.image * window.count() + i * window.columns() + j,
           (at.row - window.top(i)) * window.kernel_columns + at.column - window.left(j));
}

template <class T>
struct Unfold {
  Window window;
  int64_t channels;
  T* y;
  const T* x;
  KERNEL void operator()(int64_t i) const {
    const int64_t place = i / channels % window.area(), number = i / channels / window.area();
    const ImagePlace at(number * channels + i % channels, channels, window.rows(), window.columns());
    const int64_t row = window.top(at.row) + place / window.kernel_columns, column = window.left(at.column) + place % window.kernel_columns;
    const bool inside = row >= 0 && row < window.height && column >= 0 && column < window.width;
    y[i] = inside ? x[((at.image * window.height + row) * window.width + column) * channels + at.channel] : T(0);
  }
};

template <class T>
struct Fold {
  Window window;
  int64_t channels;
  T* dx;
  const T* dy;
  KERNEL void operator()(int64_t i) const {
    const ImagePlace at(i, channels, window.height, window.width);
    T sum = 0;
    each_window(window, at, [&](int64_t number, int64_t place) { sum += dy[(number * window.area() + place) * channels + at.channel]; });
    dx[i] = sum;
  }
};

template <class T>
struct MaxPool {
  Window window;
  int64_t channels;
  T* y;
  unsigned char* place;  // may be null
  const T* x;
  KERNEL void operator()(int64_t i) const {
    T best = 0;
    int64_t of_best = -1;
    each_pixel(window, ImagePlace(i, channels, window.rows(), window.columns()), channels, [&](int64_t offset, int64_t here) {
      const T value = x[offset];
      if (of_best >= 0 && !(value > best) && value == value) return;
      best = value;
      of_best = here;
    });
    y[i] = best;
    if (place) place[i] = static_cast<unsigned char>(of_best);
  }
};

template <class T>
struct MaxPoolBackward {
  Window window;
  int64_t channels;
  T* dx;
  const T* dy;
  const unsigned char* place;
  KERNEL void operator()(int64_t i) const {
    const ImagePlace at(i, channels, window.height, window.width);
    T sum = 0;
    each_window(window, at, [&](int64_t number, int64_t here) {
      const int64_t offset = number * channels + at.channel;
      if (place[offset] == here) sum += dy[offset];
    });
    dx[i] = sum;
  }
};

template <class T>
struct AveragePool {
  Window window;
  int64_t channels;
  T* y;
  const T* x;
  KERNEL void operator()(int64_t i) const {
    T sum = 0;
    each_pixel(window, ImagePlace(i, channels, window.rows(), window.columns()), channels,
               [&](int64_t offset, int64_t) { sum += x[offset]; });
    y[i] = sum / static_cast<T>(window.area());
  }
};

template <class T>
struct AveragePoolBackward {
  Window window;
  int64_t channels;
  T* dx;
  const T* dy;
  KERNEL void operator()(int64_t i) const {
    const ImagePlace at(i, channels, window.height, window.width);
    T sum = 0;
    each_window(window, at, [&](int64_t number, int64_t) { sum += dy[number * channels + at.channel]; });
    dx[i] = sum / static_cast<T>(window.area());
  }
};

template <class M>
void GpuOps<M>::body(const op::Unfold& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), Unfold<T>{args.window, args.x.size(1), args.y.data<T>(), args.x.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::Fold& args) {
  begin(args, args.dx.shape());
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    each(args.dx.count(), Fold<T>{args.window, args.dx.size(1), args.dx.data<T>(), args.dy.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::MaxPool& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    unsigned char* place = args.place ? args.place.data<unsigned char>() : nullptr;
    each(args.y.count(), MaxPool<T>{args.window, args.x.size(1), args.y.data<T>(), place, args.x.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::MaxPoolBackward& args) {
  begin(args, args.dx.shape());
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    each(args.dx.count(),
         MaxPoolBackward<T>{args.window, args.dx.size(1), args.dx.data<T>(), args.dy.data<T>(), args.place.data<unsigned char>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::AveragePool& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), AveragePool<T>{args.window, args.x.size(1), args.y.data<T>(), args.x.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::AveragePoolBackward& args) {
  begin(args, args.dx.shape());
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    each(args.dx.count(), AveragePoolBackward<T>{args.window, args.dx.size(1), args.dx.data<T>(), args.dy.data<T>()});
  });
}

}  // namespace comera::gpu
