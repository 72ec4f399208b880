#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/picture.h"

namespace comera {
namespace {

constexpr int kBits = 22;  // of a weight: sums of 8-bit values stay below 2^31

// What one line (or column) of the result is made of: weights of neighbouring pixels, which sum to 1.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

// Of `count` pixels from `first` on, where `from` pixels become `to`: a triangle as wide as two pixels of the result, or of the source
// where it is enlarged.
std::vector<Taps> triangles(int64_t from, int64_t to, int64_t first, int64_t count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0),
                  end = std::min<int64_t>(static_cast<int64_t>(centre + reach + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t at = begin; at < end; ++at) {
      weights.push_back(std::max(0.0, 1 - std::fabs((static_cast<double>(at) - centre + 0.5) / reach)));
      sum += weights.back();
    }
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = begin;
    for (const double weight : weights) taps.weights.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kBits)));
  }
  return all;
}

unsigned char rounded(int64_t sum) { return static_cast<unsigned char>(std::clamp<int64_t>((sum + (1 << (kBits - 1))) >> kBits, 0, 255)); }

// Lines `top` to `bottom` - 1 of the source, each made of `columns`.
Picture across(const Picture& from, const std::vector<Taps>& columns, int64_t top, int64_t bottom) {
  const auto width = static_cast<int64_t>(columns.size());
  Picture to{bottom - top, width, from.channels, std::vector<unsigned char>(static_cast<size_t>((bottom - top) * width * from.channels))};
  unsigned char* out = to.pixels.data();
  for (int64_t y = top; y < bottom; ++y)
    for (const Taps& taps : columns)
      for (int64_t c = 0; c < from.channels; ++c) {
        const unsigned char* in = from.pixels.data() + (y * from.width + taps.first) * from.channels + c;
        int64_t sum = 0;
        for (const int32_t weight : taps.weights) {
          sum += int64_t{weight} * *in;
          in += from.channels;
        }
        *out++ = rounded(sum);
      }
  return to;
}

// `lines` of a picture whose first line is line `top`.
Picture down(const Picture& from, const std::vector<Taps>& lines, int64_t top) {
  const int64_t line = from.width * from.channels, height = static_cast<int64_t>(lines.size());
  Picture to{height, from.width, from.channels, std::vector<unsigned char>(static_cast<size_t>(height * line))};
  unsigned char* out = to.pixels.data();
  for (const Taps& taps : lines)
    for (int64_t x = 0; x < line; ++x) {
      const unsigned char* in = from.pixels.data() + (taps.first - top) * line + x;
      int64_t sum = 0;
      for (const int32_t weight : taps.weights) {
        sum += int64_t{weight} * *in;
        in += line;
      }
      *out++ = rounded(sum);
    }
  return to;
}

// Pixels to cut from the first side: half of the excess, rounded to even.
int64_t margin(int64_t size, int64_t wanted) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - wanted) / 2)); }

}  // namespace

// Only the pixels that stay are made: a line of pixels that is scaled as a whole may be larger than memory.
Picture fitted(Picture picture, int64_t height, int64_t width) {
  CHECK(height > 0 && width > 0 && picture.height > 0 && picture.width > 0);
  const int64_t h = picture.height, w = picture.width;
  if (h == height && w == width) return picture;
  const bool by_width = width * h >= height * w;  // the side that just fits
  const int64_t wide = by_width ? width : height * w / h, high = by_width ? width * h / w : height;
  const std::vector<Taps> columns = triangles(w, wide, margin(wide, width), width),
                          lines = triangles(h, high, margin(high, height), height);
  const int64_t top = lines.front().first, bottom = lines.back().first + static_cast<int64_t>(lines.back().weights.size());
  return down(across(picture, columns, top, bottom), lines, top);
}

}  // namespace comera
