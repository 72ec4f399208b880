// Patches of images and pooling. A thread takes whole rows of the result, each of which is summed in the order of its windows or places.
#include <algorithm>
#include <cstring>

#include "core/base/rounding.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

// body(image, row, column, number) for all windows (or pixels) of images with `rows` x `columns` of them; `work`: elements of each.
template <class Body>
void for_places(ThreadPool& pool, int64_t images, int64_t rows, int64_t columns, int64_t work, const Body& body) {
  const int64_t grain = kElementGrain / std::max<int64_t>(work, 1) + 1;
  pool.parallel_for(images * rows * columns, grain, [&](int64_t begin, int64_t end) {
    int64_t column = begin % columns, row = begin / columns % rows, image = begin / columns / rows;
    for (int64_t at = begin; at < end; ++at) {
      body(image, row, column, at);
      if (++column < columns) continue;
      column = 0;
      if (++row < rows) continue;
      row = 0;
      ++image;
    }
  });
}

template <class Body>
void for_windows(ThreadPool& pool, const Window& window, const Tensor& pixels, int64_t work, const Body& body) {
  for_places(pool, pixels.size(0) / window.pixels(), window.rows(), window.columns(), work, body);
}
template <class Body>
void for_pixels(ThreadPool& pool, const Window& window, const Tensor& pixels, int64_t work, const Body& body) {
  for_places(pool, pixels.size(0) / window.pixels(), window.height, window.width, work, body);
}

// body(number of the pixel, place in the window) for the pixels under a window, in their order.
template <class Body>
void each_pixel(const Window& window, int64_t image, int64_t row, int64_t column, const Body& body) {
  const Span lines = window.rows_inside(row), across = window.columns_inside(column);
  for (int64_t i = lines.begin; i < lines.end; ++i) {
    const int64_t first = image * window.pixels() + (window.top(row) + i) * window.width + window.left(column);
    for (int64_t j = across.begin; j < across.end; ++j) body(first + j, i * window.kernel_columns + j);
  }
}

// body(number of the window, place in it) for the windows on a pixel, in their order.
template <class Body>
void each_window(const Window& window, int64_t image, int64_t row, int64_t column, const Body& body) {
  const Span lines = window.rows_over(row), across = window.columns_over(column);
  const int64_t count = window.count(), columns = window.columns();
  for (int64_t i = lines.begin; i < lines.end; ++i)
    for (int64_t j = across.begin; j < across.end; ++j)
      body(image * count + i * columns + j, (row - window.top(i)) * window.kernel_columns + column - window.left(j));
}

}  // namespace

void CpuOps::body(const op::Unfold& args) {
  const Window window = args.window;
  const int64_t channels = args.x.size(1), across = window.kernel_columns * channels;
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* from = args.x.data<T>();
    T* to = args.y.data<T>();
    for_windows(pool_, window, args.x, window.area() * channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      const Span lines = window.rows_inside(row), inside = window.columns_inside(column);
      const int64_t begin = inside.begin * channels, end = inside.end * channels;
      for (int64_t i = 0; i < window.kernel_rows; ++i) {
        T* line = to + (at * window.kernel_rows + i) * across;
        if (i < lines.begin || i >= lines.end) {
          std::fill(line, line + across, T(0));
          continue;
        }
        const T* pixels =
            from + (image * window.pixels() + (window.top(row) + i) * window.width + window.left(column) + inside.begin) * channels;
        std::fill(line, line + begin, T(0));
        std::copy(pixels, pixels + (end - begin), line + begin);
        std::fill(line + end, line + across, T(0));
      }
    });
  });
}

void CpuOps::body(const op::Fold& args) {
  const Window window = args.window;
  const int64_t channels = args.dx.size(1), patch = window.area() * channels;
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    const T* from = args.dy.data<T>();
    T* to = args.dx.data<T>();
    for_pixels(pool_, window, args.dx, window.area() * channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      T* sum = to + at * channels;
      std::fill(sum, sum + channels, T(0));
      each_window(window, image, row, column, [&](int64_t number, int64_t place) {
        const T* term = from + number * patch + place * channels;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) sum[c] += term[c];
      });
    });
  });
}

void CpuOps::body(const op::MaxPool& args) {
  const Window window = args.window;
  const int64_t channels = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* from = args.x.data<T>();
    T* to = args.y.data<T>();
    unsigned char* places = args.place ? args.place.data<unsigned char>() : nullptr;
    for_windows(pool_, window, args.x, window.area() * channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      T* best = to + at * channels;
      unsigned char* of_best = places ? places + at * channels : nullptr;
      bool first = true;
      each_pixel(window, image, row, column, [&](int64_t pixel, int64_t place) {
        const T* x = from + pixel * channels;
        const auto here = static_cast<unsigned char>(place);
        if (first) {
          std::copy(x, x + channels, best);
          if (of_best) std::fill(of_best, of_best + channels, here);
          first = false;
          return;
        }
        if (of_best) {
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) of_best[c] = x[c] > best[c] || x[c] != x[c] ? here : of_best[c];
        }
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) best[c] = x[c] > best[c] || x[c] != x[c] ? x[c] : best[c];
      });
    });
  });
}

void CpuOps::body(const op::MaxPoolBackward& args) {
  const Window window = args.window;
  const int64_t channels = args.dx.size(1);
  const unsigned char* places = args.place.data<unsigned char>();
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    const T* from = args.dy.data<T>();
    T* to = args.dx.data<T>();
    for_pixels(pool_, window, args.dx, window.area() * channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      T* sum = to + at * channels;
      std::fill(sum, sum + channels, T(0));
      each_window(window, image, row, column, [&](int64_t number, int64_t place) {
        const T* dy = from + number * channels;
        const unsigned char* of_best = places + number * channels;
        const auto here = static_cast<unsigned char>(place);
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) sum[c] += of_best[c] == here ? dy[c] : T(0);
      });
    });
  });
}

void CpuOps::body(const op::AveragePool& args) {
  const Window window = args.window;
  const int64_t channels = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* from = args.x.data<T>();
    T* to = args.y.data<T>();
    const T area = static_cast<T>(window.area());
    for_windows(pool_, window, args.x, window.area() * channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      T* sum = to + at * channels;
      std::fill(sum, sum + channels, T(0));
      each_pixel(window, image, row, column, [&](int64_t pixel, int64_t) {
        const T* x = from + pixel * channels;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) sum[c] += x[c];
      });
      for (int64_t c = 0; c < channels; ++c) sum[c] /= area;
    });
  });
}

void CpuOps::body(const op::AveragePoolBackward& args) {
  const Window window = args.window;
  const int64_t channels = args.dx.size(1);
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    const T* from = args.dy.data<T>();
    T* to = args.dx.data<T>();
    const T area = static_cast<T>(window.area());
    for_pixels(pool_, window, args.dx, channels, [&](int64_t image, int64_t row, int64_t column, int64_t at) {
      T* sum = to + at * channels;
      std::fill(sum, sum + channels, T(0));
      each_window(window, image, row, column, [&](int64_t number, int64_t) {
        const T* dy = from + number * channels;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) sum[c] += dy[c];
      });
      for (int64_t c = 0; c < channels; ++c) sum[c] /= area;
    });
  });
}

}  // namespace comera
