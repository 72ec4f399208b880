// Colours and measures of the window; the one place that knows them. Sizes are in multiples of the font's size.
#pragma once
#include <imgui.h>

#include <array>

namespace comera::studio {

enum class ThemeKind { dark, light };

struct Theme {
  ImU32 app, card, border, raised, hover, pressed;  // from the back to the front
  ImU32 text, dim;
  ImU32 accent, accent_hover, on_accent, accent_soft;
  ImU32 good, warning, bad;
  ImU32 grid;
  std::array<ImU32, 8> series;  // told apart by colour-blind people too; after Okabe and Ito
};

const Theme& theme();
ThemeKind theme_kind();

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

float em(float count);                       // multiples of the font's size, whole pixels
ImU32 with_alpha(ImU32 color, float alpha);  // alpha times that of the colour
ImU32 mix(ImU32 a, ImU32 b, float share_of_b);
inline ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }
// Perceptually even, dark to bright, 0..1 (a part of viridis).
ImU32 heat(float value);
// A difference, -1..1: blue, through the colour of a raised surface at 0, to red (after RdBu).
ImU32 diverging(float value);
// Black or white, whichever reads better on the colour.
ImU32 readable_on(ImU32 color);
// Contrast of two opaque colours after WCAG, 1..21.
double contrast(ImU32 a, ImU32 b);

// Text of one size class; pop with ImGui::PopFont().
void push_small();  // captions
void push_title();  // of a card
void push_large();  // of a page
void push_numbers(float size = 1);

}  // namespace comera::studio
