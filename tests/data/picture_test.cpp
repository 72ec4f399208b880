// Pictures: every kind of PNG and JPEG against its pixels, sizes against Pillow's numbers, and files that are wrong.
#include "core/data/picture.h"

#include <cmath>

#include "tests/data/pictures.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::jpeg_bytes, test::png_bytes, test::some_picture;
using Bytes = std::vector<unsigned char>;

Bytes pixels_of(const std::string& bytes, int64_t channels = 0) { return read_picture("a file", bytes, channels).pixels; }

std::string wrong_with(const std::string& bytes) {
  try {
    read_picture("folder/a file", bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(std::string(error.what()).find("folder/a file"), std::string::npos) << error.what();
    EXPECT_FALSE(error.why().empty());
    return error.why();
  }
  return "";
}

TEST(Pictures, PngOfEightBitsIsExact) {
  for (const int64_t channels : {1, 3}) {
    const Picture picture = some_picture(5, 7, channels);
    const Picture read = read_picture("a", png_bytes(picture));
    EXPECT_EQ(read.height, 5);
    EXPECT_EQ(read.width, 7);
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.pixels, picture.pixels);
    EXPECT_EQ(
        pixels_of(png_bytes(5, 7, {.type = channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, .interlaced = true}, picture.pixels)),
        picture.pixels);
  }
}

TEST(Pictures, AlphaIsLeftOut) {
  EXPECT_EQ(pixels_of(png_bytes(1, 2, {.type = PNG_COLOR_TYPE_RGB_ALPHA}, {1, 2, 3, 0, 4, 5, 6, 128})), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels_of(png_bytes(2, 1, {.type = PNG_COLOR_TYPE_GRAY_ALPHA}, {9, 0, 8, 255})), (Bytes{9, 8}));
}

TEST(Pictures, SixteenBitsAreRoundedToEight) {
  const Bytes lines = {0, 0, 0x12, 0x34, 0x7f, 0xff, 0x80, 0x7f, 0x80, 0x81, 0xff, 0xff};
  Bytes expected;
  for (size_t i = 0; i < lines.size(); i += 2)
    expected.push_back(static_cast<unsigned char>(std::lround((lines[i] * 256 + lines[i + 1]) * 255.0 / 65535)));
  EXPECT_EQ(pixels_of(png_bytes(1, 6, {.type = PNG_COLOR_TYPE_GRAY, .bits = 16}, lines)), expected);
  EXPECT_EQ(pixels_of(png_bytes(1, 2, {.type = PNG_COLOR_TYPE_RGB, .bits = 16}, lines)), expected);
}

TEST(Pictures, PalettesBecomeColours) {
  const std::vector<png_color> palette = {{1, 2, 3}, {50, 60, 70}, {200, 0, 100}, {255, 255, 255}};
  const auto packed = [&](int bits, const Bytes& lines, const Bytes& transparent = {}) {
    return pixels_of(
        png_bytes(1, 4, {.type = PNG_COLOR_TYPE_PALETTE, .bits = bits, .palette = palette, .transparent = transparent}, lines));
  };
  const Bytes expected = {255, 255, 255, 1, 2, 3, 200, 0, 100, 50, 60, 70};
  EXPECT_EQ(packed(8, {3, 0, 2, 1}), expected);
  EXPECT_EQ(packed(4, {0x30, 0x21}), expected);
  EXPECT_EQ(packed(2, {0b11001001}), expected);
  EXPECT_EQ(packed(8, {3, 0, 2, 1}, {0, 255, 7}), expected) << "alpha of the palette";
}

TEST(Pictures, FewGrayLevelsSpanTheWholeRange) {
  EXPECT_EQ(pixels_of(png_bytes(1, 4, {.type = PNG_COLOR_TYPE_GRAY, .bits = 1}, {0b10110000})), (Bytes{255, 0, 255, 255}));
  EXPECT_EQ(pixels_of(png_bytes(1, 4, {.type = PNG_COLOR_TYPE_GRAY, .bits = 2}, {0b11000110})), (Bytes{255, 0, 85, 170}));
}

TEST(Pictures, JpegIsNearlyItsPixels) {
  for (const int64_t channels : {1, 3})
    for (const bool progressive : {false, true}) {
      Picture picture{16, 24, channels, {}};  // one colour in each half: within blocks nothing is lost but rounding
      for (int64_t i = 0; i < 16 * 24; ++i)
        for (int64_t c = 0; c < channels; ++c) picture.pixels.push_back(static_cast<unsigned char>((i % 24 < 16 ? 40 : 180) + 20 * c));
      const Picture read = read_picture("a", jpeg_bytes(picture, progressive));
      EXPECT_EQ(read.channels, channels);
      ASSERT_EQ(read.pixels.size(), picture.pixels.size());
      for (size_t i = 0; i < read.pixels.size(); ++i) ASSERT_NEAR(read.pixels[i], picture.pixels[i], 2) << i;
    }
}

// Adobe's CMYK is stored upside down: 255 is no ink.
TEST(Pictures, CmykBecomesColours) {
  Picture picture{8, 8, 4, {}};
  for (int i = 0; i < 64; ++i)
    for (const int value : {255, 128, 0, 200}) picture.pixels.push_back(static_cast<unsigned char>(value));
  const Picture read = read_picture("a", jpeg_bytes(picture));
  EXPECT_EQ(read.channels, 3);
  for (size_t i = 0; i < read.pixels.size(); i += 3) {
    EXPECT_NEAR(read.pixels[i], 200, 2);
    EXPECT_NEAR(read.pixels[i + 1], 100, 2);
    EXPECT_NEAR(read.pixels[i + 2], 0, 2);
  }
}

TEST(Pictures, ColoursAndGrayAreAsTheModelSays) {
  const Picture colours{1, 4, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}};
  EXPECT_EQ(pixels_of(png_bytes(colours), 1), (Bytes{76, 150, 29, 18})) << "0.299 R + 0.587 G + 0.114 B";
  EXPECT_EQ(pixels_of(png_bytes(colours), 3), colours.pixels);
  EXPECT_EQ(pixels_of(png_bytes(Picture{1, 2, 1, {7, 9}}), 3), (Bytes{7, 7, 7, 9, 9, 9}));
}

// Numbers of Pillow 13.0.0: resize() with BILINEAR, then crop().
TEST(Pictures, AreFittedAsPillowDoes) {
  Picture picture{5, 7, 1, {}};
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x) picture.pixels.push_back(static_cast<unsigned char>(17 * x * x + 31 * y * y + 5 * x * y));
  EXPECT_EQ(fitted(picture, 2, 3).pixels, (Bytes{68, 123, 129, 98, 139, 132}));
  EXPECT_EQ(fitted(picture, 4, 4).pixels, (Bytes{14, 55, 125, 97, 78, 126, 136, 138, 75, 131, 149, 93, 134, 68, 163, 133}));
  EXPECT_EQ(
      fitted(picture, 8, 9).pixels,
      (Bytes{8,   22,  54,  99,  153, 66,  58,  155, 131, 22,  38,  72,  118, 173, 87,  81,  180, 157, 47,  64,  100, 143, 190, 116,
             113, 204, 182, 106, 126, 163, 150, 97,  127, 141, 131, 97,  105, 127, 166, 154, 104, 136, 130, 71,  76,  44,  67,  109,
             157, 210, 142, 80,  24,  117, 95,  42,  86,  142, 208, 132, 104, 142, 180, 140, 27,  73,  130, 197, 123, 127, 237, 226}));
}

TEST(Pictures, OfAnySizeAreFitted) {
  EXPECT_EQ(fitted(some_picture(4, 6, 3), 4, 6).pixels, some_picture(4, 6, 3).pixels);
  for (const auto& [h, w] : {std::pair{1, 1}, {1, 50000}, {50000, 1}, {3, 7}, {64, 65}})
    for (const auto& [height, width] : {std::pair{8, 8}, {5, 9}, {1, 1}}) {
      const Picture same = fitted(Picture{h, w, 1, Bytes(static_cast<size_t>(h * w), 77)}, height, width);
      EXPECT_EQ(same.pixels, Bytes(static_cast<size_t>(height * width), 77)) << h << " x " << w << " to " << height << " x " << width;
    }
  Picture wide{2, 6, 1, {0, 0, 10, 20, 0, 0, 0, 0, 30, 40, 0, 0}};
  EXPECT_EQ(fitted(wide, 2, 2).pixels, (Bytes{10, 20, 30, 40})) << "the middle";
}

TEST(Pictures, CutOffAnywhereIsAnError) {
  const Picture picture = some_picture(9, 12, 3);
  for (const std::string& good : {png_bytes(picture), jpeg_bytes(picture), jpeg_bytes(picture, true)}) {
    EXPECT_EQ(wrong_with(good), "");
    for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(wrong_with(good.substr(0, size)), "") << size << " of " << good.size();
  }
}

// 60,000 x 60,000 pixels in a file of a few bytes: refused before memory is taken.
TEST(Pictures, HugeSizesAreRefused) {
  const auto big = [](size_t number, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
    return text;
  };
  std::string png = png_bytes(some_picture(1, 1, 3));
  std::string header = png.substr(12, 17);  // IHDR
  header.replace(4, 8, big(60000, 4) + big(60000, 4));
  png.replace(12, 17, header);
  png.replace(29, 4, big(crc32(0, reinterpret_cast<const Bytef*>(header.data()), 17), 4));
  EXPECT_EQ(wrong_with(png), "it has 60000 x 60000 pixels, 100000000 are the most");
  std::string jpeg = jpeg_bytes(some_picture(1, 1, 3));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, big(60000, 2) + big(60000, 2));
  EXPECT_EQ(wrong_with(jpeg), "it has 60000 x 60000 pixels, 100000000 are the most");
}

TEST(Pictures, OtherFilesAreRefused) {
  EXPECT_EQ(wrong_with("GIF89a..."), "it is neither PNG nor JPEG");
  EXPECT_EQ(wrong_with(""), "it is neither PNG nor JPEG");
  EXPECT_NE(wrong_with(std::string("\x89PNG\r\n\x1a\n") + "more"), "");
  EXPECT_NE(wrong_with("\xff\xd8\xff"), "");
  std::string damaged = png_bytes(some_picture(9, 12, 3));
  damaged[damaged.size() - 20] = static_cast<char>(damaged[damaged.size() - 20] ^ 1);
  EXPECT_NE(wrong_with(damaged), "") << "a checksum";
}

}  // namespace
}  // namespace comera
