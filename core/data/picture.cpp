#include "core/data/picture.h"

#include "core/base/error.h"

namespace comera {
namespace {

// As ITU-R BT.601 weighs colours, in 16 bits.
unsigned char luma(const unsigned char* rgb) {
  return static_cast<unsigned char>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

Picture with_channels(Picture from, int64_t channels) {
  if (channels == 0 || channels == from.channels) return from;
  const auto count = static_cast<size_t>(from.height * from.width);
  Picture to{from.height, from.width, channels, std::vector<unsigned char>(count * static_cast<size_t>(channels))};
  for (size_t i = 0; i < count; ++i) {
    if (channels == 1)
      to.pixels[i] = luma(&from.pixels[3 * i]);
    else
      to.pixels[3 * i] = to.pixels[3 * i + 1] = to.pixels[3 * i + 2] = from.pixels[i];
  }
  return to;
}

}  // namespace

std::string size_problem(uint64_t height, uint64_t width) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (height == 0 || width == 0) return "it has " + size;
  if (height <= kMostPixels && width <= kMostPixels && height * width <= kMostPixels) return "";
  return "it has " + size + ", " + std::to_string(kMostPixels) + " are the most";
}

Picture read_picture(const std::string& path, std::string_view bytes, int64_t channels) {
  CHECK(channels == 0 || channels == 1 || channels == 3, channels << " channels");
  using namespace std::string_view_literals;
  Picture picture;
  std::string wrong;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv))
    wrong = decode_png(bytes, picture);
  else if (bytes.starts_with("\xff\xd8"sv))
    wrong = decode_jpeg(bytes, picture);
  else
    wrong = "it is neither PNG nor JPEG";
  if (!wrong.empty()) throw Error(ErrorCode::config, "cannot read the picture " + path, wrong, "replace the file, or remove it");
  return with_channels(std::move(picture), channels);
}

}  // namespace comera
