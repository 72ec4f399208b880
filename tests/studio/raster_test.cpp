// Drawings as pixels: what is covered is what was drawn, and how much of it.
#include "app/figure/raster.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "app/figure/glyphs.h"
#include "core/base/error.h"

namespace comera {
namespace {

constexpr Color kBlack = rgb(0x000000), kHalf = rgba(0, 0, 0, 128);

Drawing page(float width, float height) {
  Drawing drawing;
  drawing.size = {width, height};
  return drawing;
}

int red(const Picture& picture, int x, int y) {
  return picture.rgb.at(3 * (static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x)));
}

// How much of the page is black, in pixels.
double ink(const Picture& picture) {
  double sum = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) sum += (255 - red(picture, x, y)) / 255.0;
  return sum;
}

// First and last column, first and last row with ink in it.
std::array<int, 4> bounds(const Picture& picture) {
  std::array<int, 4> out = {picture.width, -1, picture.height, -1};
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      if (red(picture, x, y) < 200) out = {std::min(out[0], x), std::max(out[1], x), std::min(out[2], y), std::max(out[3], y)};
  return out;
}

TEST(Raster, ShapesCoverTheirArea) {
  Drawing drawing = page(100, 100);
  drawing.rect({10, 20}, {40, 50}, kBlack);
  EXPECT_EQ(ink(raster(drawing, 1)), 900);
  EXPECT_EQ(ink(raster(drawing, 2)), 3600);
  EXPECT_EQ(bounds(raster(drawing, 1)), (std::array{10, 39, 20, 49}));
  drawing = page(100, 100);
  drawing.circle({50.3f, 49.6f}, 20, kBlack);
  EXPECT_NEAR(ink(raster(drawing, 1)), M_PI * 400, 4);
  drawing = page(100, 100);
  drawing.polygon({{10, 10}, {80, 30}, {20, 90}}, kBlack);
  EXPECT_NEAR(ink(raster(drawing, 1)), 0.5 * std::abs(70 * 80 - 10 * 20), 6);
  drawing = page(100, 100);
  drawing.polygon({{10, 10}, {60, 10}, {60, 60}, {35, 30}, {10, 60}}, kBlack);  // a dent in it
  EXPECT_NEAR(ink(raster(drawing, 1)), 2500 - 0.5 * 50 * 30, 4);
  drawing = page(100, 100);
  drawing.rect({10, 10}, {60, 50}, kBlack, 10);
  EXPECT_NEAR(ink(raster(drawing, 1)), 2000 - (4 - M_PI) * 100, 3);
  drawing = page(100, 100);
  drawing.rect({10, 10}, {60, 50}, kBlack, 0, 4);
  EXPECT_NEAR(ink(raster(drawing, 1)), 180 * 4, 12) << "an outline, its corners round";
}

TEST(Raster, LinesHaveTheirWidthAndCoverAPixelOnce) {
  Drawing drawing = page(100, 100);
  drawing.line({{10, 50}, {90, 50}}, kBlack, 1);
  EXPECT_EQ(ink(raster(drawing, 1)), 80) << "level and thin: on whole pixels";
  drawing = page(100, 100);
  drawing.line({{10, 10}, {70, 90}}, kBlack, 3);
  EXPECT_NEAR(ink(raster(drawing, 1)), 300, 6);
  drawing = page(100, 100);
  drawing.line({{10, 50}, {30, 20}, {50, 80}, {30, 50}, {70, 50}}, kHalf, 6);
  const Picture picture = raster(drawing, 1);
  int darkest = 255;
  for (int y = 0; y < 100; ++y)
    for (int x = 0; x < 100; ++x) darkest = std::min(darkest, red(picture, x, y));
  EXPECT_EQ(darkest, 127) << "where its parts meet and cross it is as dark as elsewhere";
  drawing = page(100, 100);
  drawing.line({{10, 50}, {80, 50}}, kBlack, 2, -1, 10);
  EXPECT_NEAR(ink(raster(drawing, 1)), 2 * 70 / (1 + kGapOfDash), 20 / (1 + kGapOfDash) + 1) << "dashes and their gaps";
}

TEST(Raster, NothingIsPaintedOutsideOfItsClip) {
  Drawing drawing = page(100, 100);
  drawing.clips.push_back({20, 30, 60, 70});
  drawing.line({{-500, 40}, {500, 60}}, kBlack, 4, 0);
  drawing.circle({60, 70}, 30, kBlack, 0);
  drawing.polygon({{-10, 65}, {200, 65}, {200, 300}}, kBlack, 0);
  drawing.rect({0, 60}, {1000, 61}, kBlack, 0, 0, 0);
  EXPECT_EQ(bounds(raster(drawing, 1)), (std::array{20, 59, 40, 69}));
  drawing = page(30, 20);  // far beyond the page
  drawing.line({{-1e9f, -1e9f}, {1e9f, 1e9f}}, kBlack, 2);
  drawing.circle({NAN, 3}, 4, kBlack);
  drawing.rect({-1e30f, 5}, {1e30f, 6}, kBlack);
  EXPECT_GE(ink(raster(drawing, 1)), 30);
}

TEST(Raster, TextStandsWhereSvgPutsIt) {
  ASSERT_TRUE(makes_pictures());
  Drawing drawing = page(200, 60);
  drawing.text({20, 30}, 20, kBlack, "HHH");
  const Picture left = raster(drawing, 1);
  const auto [x0, x1, y0, y1] = bounds(left);
  EXPECT_NEAR(x0, 22, 2);
  EXPECT_NEAR(y1, 36, 1) << "the baseline: 0.35 of its size below the middle";
  EXPECT_NEAR(y1 - y0, 20 * 0.727, 2) << "the height of capitals in this font";
  Glyphs glyphs;
  const float width = glyphs.width("HHH", 20, false);
  EXPECT_NEAR(static_cast<float>(x1 - x0), width, 5);
  EXPECT_GT(glyphs.width("HHH", 20, true), width) << "bold is wider";
  for (const auto& [anchor, shift] : {std::pair{Anchor::middle, width / 2}, {Anchor::right, width}}) {
    drawing = page(200, 60);
    drawing.text({20 + shift, 30}, 20, kBlack, "HHH", anchor);
    EXPECT_NEAR(bounds(raster(drawing, 1))[0], x0, 1);
  }
  // Signs that the font has, that it has not, and bytes that are no text.
  EXPECT_GT(glyphs.width("±µ×", 20, false), 20);
  EXPECT_EQ(glyphs.width("\x01", 20, false), 0);
  EXPECT_GE(glyphs.width("\xff\xc3(", 20, false), 0);
  drawing.text({20, 30}, 20, kBlack, "\xf0\x9f");
  raster(drawing, 1);
}

TEST(Raster, APageIsNeverTooLarge) {
  Drawing drawing = page(100'000, 10);
  const Picture picture = raster(drawing, 4);
  EXPECT_EQ(picture.width, static_cast<int>(kLargestSide));
  EXPECT_EQ(picture.height, 1);
  drawing = page(30, 20);
  drawing.background = rgb(0x0a141e);
  EXPECT_EQ(red(raster(drawing, 3), 89, 59), 10);
  EXPECT_EQ(png_file(raster(drawing, 3)).substr(0, 8), "\x89PNG\r\n\x1a\n");
}

}  // namespace
}  // namespace comera
