// Windows on an image: where they lie, for patches of convolutions and for pooling. Pixels of an image are rows of C channels (channels
// last), line by line; windows and the places inside one are counted line by line, too.
#pragma once
#include <cstdint>

#include "core/base/hd.h"

namespace comera {

// Counts from `begin` to `end` - 1.
struct Span {
  int64_t begin, end;
};

// Windows of kernel_rows x kernel_columns pixels, `stride` apart, on an image with `pad` pixels more at each end.
struct Window {
  int64_t height = 1, width = 1;  // of the image
  int64_t kernel_rows = 1, kernel_columns = 1;
  int64_t stride_rows = 1, stride_columns = 1;
  int64_t pad_rows = 0, pad_columns = 0;

  // Square ones.
  static Window square(int64_t height, int64_t width, int64_t kernel, int64_t stride, int64_t pad) {
    return {height, width, kernel, kernel, stride, stride, pad, pad};
  }
  static Window whole(int64_t height, int64_t width) { return {height, width, height, width}; }

  HD int64_t rows() const { return (height + 2 * pad_rows - kernel_rows) / stride_rows + 1; }  // of windows
  HD int64_t columns() const { return (width + 2 * pad_columns - kernel_columns) / stride_columns + 1; }
  HD int64_t count() const { return rows() * columns(); }  // Q, of an image
  HD int64_t pixels() const { return height * width; }     // P
  HD int64_t area() const { return kernel_rows * kernel_columns; }
  // At least one window lies on the image, and each has a pixel of it.
  bool is_sound() const {
    const auto fits = [](int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
      return size > 0 && kernel > 0 && stride > 0 && pad >= 0 && pad < kernel && kernel <= size + 2 * pad;
    };
    return fits(height, kernel_rows, stride_rows, pad_rows) && fits(width, kernel_columns, stride_columns, pad_columns);
  }
  // Patches are the pixels themselves.
  bool is_pixel() const { return area() == 1 && stride_rows == 1 && stride_columns == 1; }

  // The first pixel of a window; below 0 in the padding.
  HD int64_t top(int64_t row) const { return row * stride_rows - pad_rows; }
  HD int64_t left(int64_t column) const { return column * stride_columns - pad_columns; }
  // The rows (columns) of a window, counted in it, that lie on the image.
  HD Span rows_inside(int64_t row) const { return inside(top(row), kernel_rows, height); }
  HD Span columns_inside(int64_t column) const { return inside(left(column), kernel_columns, width); }
  // The rows (columns) of windows that cover a pixel's row (column).
  HD Span rows_over(int64_t line) const { return over(line + pad_rows, kernel_rows, stride_rows, rows()); }
  HD Span columns_over(int64_t column) const { return over(column + pad_columns, kernel_columns, stride_columns, columns()); }

 private:
  HD static Span inside(int64_t first, int64_t kernel, int64_t size) {
    return {first < 0 ? -first : 0, kernel < size - first ? kernel : size - first};
  }
  HD static Span over(int64_t at, int64_t kernel, int64_t stride, int64_t count) {
    const int64_t last = at / stride;
    return {at < kernel ? 0 : (at - kernel) / stride + 1, last < count ? last + 1 : count};
  }
};

}  // namespace comera
