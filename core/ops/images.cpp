#include "core/ops/images.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

constexpr int64_t kMostPlaces = 256;  // that a u8 can name

// `pixels` (B P, C) and `windows` (B Q, C) or (B Q, A C).
void check_images(const char* op, const Window& window, const char* pixels_name, const Tensor& pixels, const char* windows_name,
                  const Tensor& windows, bool patches = false) {
  CHECK(window.is_sound(), op << ": windows of " << window.kernel_rows << " x " << window.kernel_columns << ", stride "
                              << window.stride_rows << " x " << window.stride_columns << ", padding " << window.pad_rows << " x "
                              << window.pad_columns << ", on images of " << window.height << " x " << window.width);
  check_float(op, pixels_name, pixels, 2);
  CHECK(pixels.size(0) % window.pixels() == 0,
        op << ": " << pixels_name << " is " << text(pixels) << ", expected rows of images of " << window.height << " x " << window.width);
  const int64_t images = pixels.size(0) / window.pixels(), channels = pixels.size(1);
  check_shape(op, windows_name, windows, {images * window.count(), patches ? window.area() * channels : channels}, pixels.dtype());
}

void check_place(const char* op, const Window& window, const Tensor& place, const Tensor& like) {
  CHECK(window.area() <= kMostPlaces, op << ": " << window.area() << " places in a window, " << kMostPlaces << " are the most");
  check_shape(op, "place", place, like.shape(), DType::u8);
}

}  // namespace

void Unfold::check() const { check_images(name, window, "x", x, "y", y, true); }
void Fold::check() const { check_images(name, window, "dx", dx, "dy", dy, true); }

void MaxPool::check() const {
  check_images(name, window, "x", x, "y", y);
  if (place) check_place(name, window, place, y);
}

void MaxPoolBackward::check() const {
  check_images(name, window, "dx", dx, "dy", dy);
  check_place(name, window, place, dy);
}

void AveragePool::check() const { check_images(name, window, "x", x, "y", y); }
void AveragePoolBackward::check() const { check_images(name, window, "dx", dx, "dy", dy); }

}  // namespace comera::op
