#include "app/figure/glyphs.h"

#include "app/figure/raster.h"

#ifdef COMERA_GLYPHS
#include <ft2build.h>
#include <freetype/freetype.h>
#include <freetype/ftoutln.h>

#include <cmath>

#include "core/base/error.h"

extern const unsigned char comera_font_text_begin[], comera_font_text_end[];
extern const unsigned char comera_font_bold_begin[], comera_font_bold_end[];

namespace comera {
namespace {

// The next character of a UTF-8 text; invalid bytes give U+FFFD.
uint32_t next_character(const std::string& text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const uint32_t first = byte(at);
  const int more = first < 0x80 ? 0 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : -1;
  if (more < 0) return ++at, 0xFFFD;
  uint32_t out = more == 0 ? first : first & (0x3Fu >> more);
  for (int i = 1; i <= more; ++i) {
    if ((byte(at + static_cast<size_t>(i)) & 0xC0) != 0x80) return ++at, 0xFFFD;
    out = out << 6 | (byte(at + static_cast<size_t>(i)) & 0x3F);
  }
  at += static_cast<size_t>(more) + 1;
  return out;
}

FT_Face open_face(FT_Library library, const unsigned char* begin, const unsigned char* end) {
  FT_Face face = nullptr;
  CHECK(FT_New_Memory_Face(library, begin, static_cast<FT_Long>(end - begin), 0, &face) == 0, "the font in this program cannot be read");
  return face;
}

}  // namespace

bool makes_pictures() { return true; }

struct Glyphs::Impl {
  FT_Library library = nullptr;
  FT_Face text = nullptr, bold = nullptr;

  Impl() {
    CHECK(FT_Init_FreeType(&library) == 0, "FreeType cannot start");
    text = open_face(library, comera_font_text_begin, comera_font_text_end);
    bold = open_face(library, comera_font_bold_begin, comera_font_bold_end);
  }
  ~Impl() { FT_Done_FreeType(library); }  // also frees its faces
  Impl(const Impl&) = delete;

  FT_Face face(float size, bool is_bold) const {
    FT_Face of = is_bold ? bold : text;
    FT_Set_Char_Size(of, 0, static_cast<FT_F26Dot6>(std::lround(size * 64)), 72, 72);
    return of;
  }
};

Glyphs::Glyphs() : impl_(std::make_unique<Impl>()) {}
Glyphs::~Glyphs() = default;

float Glyphs::width(const std::string& text, float size, bool bold) {
  FT_Face face = impl_->face(size, bold);
  float sum = 0;
  for (size_t at = 0; at < text.size();) {
    const FT_UInt index = FT_Get_Char_Index(face, next_character(text, at));
    if (index && FT_Load_Glyph(face, index, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP) == 0)
      sum += static_cast<float>(face->glyph->linearHoriAdvance) / 65536;
  }
  return sum;
}

void Glyphs::draw(const std::string& text, float size, bool bold, float x, const std::function<void(const Glyph&)>& one) {
  FT_Face face = impl_->face(size, bold);
  for (size_t at = 0; at < text.size();) {
    const FT_UInt index = FT_Get_Char_Index(face, next_character(text, at));
    if (!index || FT_Load_Glyph(face, index, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP) != 0) continue;
    FT_GlyphSlot slot = face->glyph;
    const float whole = std::floor(x);
    FT_Outline_Translate(&slot->outline, static_cast<FT_Pos>(std::lround((x - whole) * 64)), 0);
    if (FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL) == 0 && slot->bitmap.buffer)
      one({static_cast<int>(whole) + slot->bitmap_left, slot->bitmap_top, static_cast<int>(slot->bitmap.width),
           static_cast<int>(slot->bitmap.rows), slot->bitmap.pitch, slot->bitmap.buffer});
    x += static_cast<float>(slot->linearHoriAdvance) / 65536;
  }
}

}  // namespace comera

#else

namespace comera {

bool makes_pictures() { return false; }

struct Glyphs::Impl {};
Glyphs::Glyphs() = default;
Glyphs::~Glyphs() = default;
float Glyphs::width(const std::string&, float, bool) { return 0; }
void Glyphs::draw(const std::string&, float, bool, float, const std::function<void(const Glyph&)>&) {}

}  // namespace comera
#endif
