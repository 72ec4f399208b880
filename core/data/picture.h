// Pictures in files: PNG (libpng) and JPEG (libjpeg-turbo), as the pixels that are stored: no profile, gamma or orientation is applied, as
// Pillow's convert() does. Any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace comera {

inline constexpr int64_t kMostPixels = 100'000'000;  // of a picture: more are refused before memory is taken for them

// Line by line, the channels of a pixel side by side: gray, or red, green and blue; 0..255.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<unsigned char> pixels;
};

// `bytes` of the file `path`, which messages name. `channels`: 1 gray (0.299 R + 0.587 G + 0.114 B), 3 colours, 0 as the file has them.
// Palettes and CMYK become colours, 16 bits become 8, alpha is left out. Throws Error(config) for a file of another type, one that is
// damaged or cut off, and for more than kMostPixels pixels.
Picture read_picture(const std::string& path, std::string_view bytes, int64_t channels = 0);

// The picture scaled until it just covers height x width, and its middle: torchvision's Resize of the shorter side and CenterCrop, with
// Pillow's bilinear filter, which averages where it shrinks. A picture of this size stays as it is.
Picture fitted(Picture picture, int64_t height, int64_t width);

// Decode one format into `out`, with 1 or 3 channels. Return the problem; "" = success.
std::string decode_png(std::string_view bytes, Picture& out);
std::string decode_jpeg(std::string_view bytes, Picture& out);
// The problem of decoding a picture of this size; "" = none.
std::string size_problem(uint64_t height, uint64_t width);

}  // namespace comera
