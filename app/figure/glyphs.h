// Rasterised glyphs of the window's font.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace comera {

inline constexpr float kBaseline = 0.35f;  // baseline below the middle, as a fraction of the text size; as in SVG (drawing.cpp)

struct Glyph {
  int left = 0, top = 0;  // position of the bitmap: from the picture's left edge, above the baseline
  int width = 0, height = 0, pitch = 0;
  const uint8_t* rows = nullptr;  // rows from the top; coverage 0..255 per pixel
};

// `size`: pixels per em. Text is UTF-8; characters missing in the font are left out.
class Glyphs {
 public:
  Glyphs();
  ~Glyphs();
  float width(const std::string& text, float size, bool bold);  // pixels
  // Calls `one` for each glyph, starting at `x`; a glyph is valid only during the call.
  void draw(const std::string& text, float size, bool bold, float x, const std::function<void(const Glyph&)>& one);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace comera
