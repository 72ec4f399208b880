// Pictures that tests write: PNG and JPEG of any kind.
#pragma once
#include <png.h>

#include <cstdio>
#include <string>
#include <vector>
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "core/data/picture.h"

namespace comera::test {

struct PngKind {
  int type = PNG_COLOR_TYPE_RGB, bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette = {};
  std::vector<unsigned char> transparent = {};  // alpha of the palette's colours
};

// `lines`: height lines of bytes as they are stored (16-bit values with the high byte first).
inline std::string png_bytes(int64_t height, int64_t width, const PngKind& kind, std::vector<unsigned char> lines) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp to, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<const char*>(bytes), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bits, kind.type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!kind.palette.empty()) png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
  if (!kind.transparent.empty()) png_set_tRNS(png, info, kind.transparent.data(), static_cast<int>(kind.transparent.size()), nullptr);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(lines.data() + static_cast<size_t>(y) * (lines.size() / static_cast<size_t>(height)));
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

inline std::string png_bytes(const Picture& picture) {
  return png_bytes(picture.height, picture.width, {.type = picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB},
                   picture.pixels);
}

// 1, 3 or 4 channels; 4 are CMYK with Adobe's marker, whose values are upside down.
inline std::string jpeg_bytes(Picture picture, bool progressive = false) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.input_components = static_cast<int>(picture.channels);
  jpeg.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : picture.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW line = picture.pixels.data() + static_cast<size_t>(jpeg.next_scanline * picture.width * picture.channels);
    jpeg_write_scanlines(&jpeg, &line, 1);
  }
  jpeg_finish_compress(&jpeg);
  const std::string out(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return out;
}

// Smooth, so that JPEG keeps it, and different in every pixel and for every `seed`.
inline Picture some_picture(int64_t height, int64_t width, int64_t channels, int seed = 0) {
  Picture picture{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        picture.pixels.push_back(static_cast<unsigned char>((7 * seed + 5 * y + 3 * x + 40 * c) % 200 + 20));
  return picture;
}

}  // namespace comera::test
