// Fonts and sizes of the window; its colours are in app/figure/colors.h. Sizes are multiples of the font size.
#pragma once
#include <imgui.h>

#include "app/figure/colors.h"

namespace comera::studio {

struct Fonts {
  ImFont* text = nullptr;
  ImFont* bold = nullptr;
  ImFont* numbers = nullptr;  // with digits of equal width
};
const Fonts& fonts();

// Loads the fonts of the program, once after the context was created.
void load_fonts();
// Colours, spacing and rounding. `scale`: monitor scale times user scale.
void apply_theme(ThemeKind kind, float scale);

float em(float count);  // multiples of the font size, rounded to whole pixels
inline ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }
// Colour of a difference in -1..1: blue at -1, surface colour at 0, red at 1 (after RdBu).
ImU32 diverging(float value);

// Begin text of a size class; end with ImGui::PopFont().
void push_small();  // captions
void push_title();  // titles of cards
void push_large();  // titles of pages
void push_numbers(float size = 1);

}  // namespace comera::studio
