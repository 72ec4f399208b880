// The colours of the window and of all pictures, in a dark, a light and a high-contrast theme. No other file defines colours.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace comera {

using Color = uint32_t;  // red in the lowest byte, then green, blue, opacity

constexpr Color rgba(unsigned red, unsigned green, unsigned blue, unsigned alpha) { return alpha << 24 | blue << 16 | green << 8 | red; }
constexpr Color rgb(unsigned hex) { return rgba((hex >> 16) & 255, (hex >> 8) & 255, hex & 255, 255); }
constexpr unsigned red_of(Color color) { return color & 255; }
constexpr unsigned green_of(Color color) { return (color >> 8) & 255; }
constexpr unsigned blue_of(Color color) { return (color >> 16) & 255; }
constexpr unsigned alpha_of(Color color) { return color >> 24; }

enum class ThemeKind { dark, light, contrast };
inline constexpr ThemeKind kThemes[] = {ThemeKind::dark, ThemeKind::light, ThemeKind::contrast};
const char* name_of(ThemeKind kind);  // "dark", "light", "contrast"
std::optional<ThemeKind> theme_of_name(const std::string& name);

struct Theme {
  Color app, card, border, raised, hover, pressed;  // from the back to the front
  Color text, dim;
  Color accent, accent_hover, on_accent, accent_soft;
  Color good, warning, bad;
  Color grid;
  std::array<Color, 8> series;  // distinguishable for colour-blind people too (tests/studio/theme_test.cpp); after Okabe and Ito
};

// The current theme; dark by default. Thread: the drawing thread only.
const Theme& theme();
ThemeKind theme_kind();
void choose_theme(ThemeKind kind);

Color with_alpha(Color color, float alpha);  // multiplies the colour's own alpha
Color mix(Color a, Color b, float share_of_b);
// Perceptually even, dark to bright, 0..1 (part of viridis; its bright end in the high-contrast theme).
Color heat(float value);
// Black or white, whichever contrasts more with the colour.
Color readable_on(Color color);
// WCAG contrast ratio of two opaque colours, 1..21.
double contrast(Color a, Color b);

}  // namespace comera
