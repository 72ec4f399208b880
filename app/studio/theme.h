// Fonts and measures of the window; its colours are in app/figure/colors.h. Sizes are in multiples of the font's size.
#pragma once
#include <imgui.h>

#include "app/figure/colors.h"

namespace comera::studio {

struct Fonts {
  ImFont* text = nullptr;
  ImFont* bold = nullptr;
  ImFont* numbers = nullptr;  // all digits equally wide
};
const Fonts& fonts();

// Fonts of the program, once after the context was made.
void load_fonts();
// Colours, spacing and rounding. `scale`: of the monitor times that of the user.
void apply_theme(ThemeKind kind, float scale);

float em(float count);  // multiples of the font's size, whole pixels
inline ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }
// A difference, -1..1: blue, through the colour of a raised surface at 0, to red (after RdBu).
ImU32 diverging(float value);

// Text of one size class; pop with ImGui::PopFont().
void push_small();  // captions
void push_title();  // of a card
void push_large();  // of a page
void push_numbers(float size = 1);

}  // namespace comera::studio
