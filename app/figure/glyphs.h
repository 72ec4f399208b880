// Letters as pixels, from the font that the window writes with.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace comera {

inline constexpr float kBaseline = 0.35f;  // of a text, below its middle, times its size: as in SVG (drawing.cpp)

struct Glyph {
  int left = 0, top = 0;  // of its pixels: from the picture's left edge, and above the baseline
  int width = 0, height = 0, pitch = 0;
  const uint8_t* rows = nullptr;  // from the top, 0..255 of each pixel is covered
};

// `size`: pixels of an em. Text is UTF-8; what the font has no sign for is left out.
class Glyphs {
 public:
  Glyphs();
  ~Glyphs();
  float width(const std::string& text, float size, bool bold);  // pixels
  // From `x` on, sign by sign; a glyph is there during the call only.
  void draw(const std::string& text, float size, bool bold, float x, const std::function<void(const Glyph&)>& one);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace comera
