#include "app/figure/colors.h"

#include <algorithm>
#include <cmath>

namespace comera {
namespace {

constexpr Theme kDark = {
    .app = rgb(0x0D1015),
    .card = rgb(0x151A21),
    .border = rgb(0x262E39),
    .raised = rgb(0x1F2630),
    .hover = rgb(0x2A3340),
    .pressed = rgb(0x344050),
    .text = rgb(0xE7EBF1),
    .dim = rgb(0x929DAD),
    .accent = rgb(0x4C97F5),
    .accent_hover = rgb(0x6BABFA),
    .on_accent = rgb(0x06101E),
    .accent_soft = rgba(76, 151, 245, 46),
    .good = rgb(0x45BF93),
    .warning = rgb(0xE3B04F),
    .bad = rgb(0xF27C72),
    .grid = rgba(255, 255, 255, 17),
    .series = {rgb(0x529DCE), rgb(0xE7A10D), rgb(0x52D8A9), rgb(0xBA648D), rgb(0xF5E349), rgb(0xEE7E44), rgb(0x909EFF), rgb(0xCDCFE6)}};

constexpr Theme kLight = {
    .app = rgb(0xEEF1F5),
    .card = rgb(0xFFFFFF),
    .border = rgb(0xD8DEE6),
    .raised = rgb(0xE1E7EE),
    .hover = rgb(0xD5DDE7),
    .pressed = rgb(0xC6D0DD),
    .text = rgb(0x18202B),
    .dim = rgb(0x525D6E),
    .accent = rgb(0x1B66D6),
    .accent_hover = rgb(0x3179E6),
    .on_accent = rgb(0xFFFFFF),
    .accent_soft = rgba(27, 102, 214, 30),
    .good = rgb(0x147A55),
    .warning = rgb(0x8F5B00),
    .bad = rgb(0xC2352D),
    .grid = rgba(0, 0, 0, 18),
    .series = {rgb(0x188DD6), rgb(0xCD3508), rgb(0x096A42), rgb(0xB0588F), rgb(0x958A41), rgb(0x891F00), rgb(0x193EBE), rgb(0x3C3D50)}};

// Text and signs have a contrast of at least 7:1 (WCAG AAA), lines of data at least 4.5:1.
constexpr Theme kContrast = {
    .app = rgb(0x000000),
    .card = rgb(0x0B0B0B),
    .border = rgb(0xA0A0A0),
    .raised = rgb(0x1C1C1C),
    .hover = rgb(0x3A3A3A),
    .pressed = rgb(0x585858),
    .text = rgb(0xFFFFFF),
    .dim = rgb(0xC8C8C8),
    .accent = rgb(0x7FBFFF),
    .accent_hover = rgb(0xA6D3FF),
    .on_accent = rgb(0x000000),
    .accent_soft = rgba(127, 191, 255, 77),
    .good = rgb(0x5FE0A8),
    .warning = rgb(0xFFCB4D),
    .bad = rgb(0xFF9D93),
    .grid = rgba(255, 255, 255, 96),
    .series = {rgb(0x539ECF), rgb(0xE39F00), rgb(0x53D9AA), rgb(0xC36491), rgb(0xF9E74A), rgb(0xEE7E44), rgb(0x9298FF), rgb(0xCBCDE4)}};

// Viridis, sampled at equal distances (matplotlib, CC0).
constexpr Color kViridis[] = {rgb(0x440154), rgb(0x482475), rgb(0x414487), rgb(0x355F8D), rgb(0x2A788E), rgb(0x21918C),
                              rgb(0x22A884), rgb(0x44BF70), rgb(0x7AD151), rgb(0xBDDF26), rgb(0xFDE725)};

ThemeKind g_kind = ThemeKind::dark;

double luminance(Color color) {
  const auto linear = [](unsigned byte) {
    const double c = byte / 255.0;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(red_of(color)) + 0.7152 * linear(green_of(color)) + 0.0722 * linear(blue_of(color));
}

}  // namespace

const char* name_of(ThemeKind kind) {
  switch (kind) {
    case ThemeKind::dark:
      return "dark";
    case ThemeKind::light:
      return "light";
    case ThemeKind::contrast:
      return "contrast";
  }
  return "";
}

std::optional<ThemeKind> theme_of_name(const std::string& name) {
  for (const ThemeKind kind : kThemes)
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

const Theme& theme() { return g_kind == ThemeKind::dark ? kDark : g_kind == ThemeKind::light ? kLight : kContrast; }
ThemeKind theme_kind() { return g_kind; }
void choose_theme(ThemeKind kind) { g_kind = kind; }

Color with_alpha(Color color, float alpha) {
  const float opacity = std::clamp(static_cast<float>(alpha_of(color)) * alpha, 0.0f, 255.0f);
  return rgba(red_of(color), green_of(color), blue_of(color), static_cast<unsigned>(std::lround(opacity)));
}

Color mix(Color a, Color b, float share) {
  const auto blend = [&](unsigned from, unsigned to) {
    const float byte = static_cast<float>(from) + (static_cast<float>(to) - static_cast<float>(from)) * share;
    return static_cast<unsigned>(std::lround(std::clamp(byte, 0.0f, 255.0f)));
  };
  return rgba(blend(red_of(a), red_of(b)), blend(green_of(a), green_of(b)), blend(blue_of(a), blue_of(b)), blend(alpha_of(a), alpha_of(b)));
}

Color heat(float value) {
  // The yellow end is left out, so a map of full ranks is a calm green. The high-contrast theme leaves out the dark
  // end: black text is readable on every colour, and every colour stands out from a black background.
  const bool bright = g_kind == ThemeKind::contrast;
  const float low = bright ? 0.68f : 0.08f, high = bright ? 1.0f : 0.72f;
  const float at = (low + (high - low) * std::clamp(value, 0.0f, 1.0f)) * static_cast<float>(std::size(kViridis) - 1);
  const size_t below = std::min(static_cast<size_t>(at), std::size(kViridis) - 2);
  return mix(kViridis[below], kViridis[below + 1], at - static_cast<float>(below));
}

double contrast(Color a, Color b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

Color readable_on(Color color) {
  constexpr Color kDarkText = rgb(0x0B0F14), kLightText = rgb(0xFFFFFF);
  return contrast(color, kDarkText) > contrast(color, kLightText) ? kDarkText : kLightText;
}

}  // namespace comera
