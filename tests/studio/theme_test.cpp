#include <array>
#include <cmath>
#include <set>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

// A colour with alpha over an opaque one.
ImU32 over(ImU32 color, ImU32 back) {
  const float alpha = vec(color).w;
  return mix(back, color | IM_COL32(0, 0, 0, 255), alpha) | IM_COL32(0, 0, 0, 255);
}

TEST(Theme, TextCanBeRead) {
  for (const ThemeKind kind : kThemes) {
    Stage stage({960, 600}, 1, kind);
    const Theme& t = theme();
    for (const ImU32 surface : {t.app, t.card}) {
      EXPECT_GE(contrast(t.text, surface), 7);
      EXPECT_GE(contrast(t.dim, surface), 4.5);
      for (const ImU32 sign : {t.good, t.warning, t.bad}) EXPECT_GE(contrast(sign, surface), 4.5);
      for (const ImU32 line : t.series) EXPECT_GE(contrast(line, surface), 3);  // graphics
    }
    EXPECT_GE(contrast(t.text, t.raised), 7);
    EXPECT_GE(contrast(t.on_accent, t.accent), 4.5);
    for (int i = 0; i <= 10; ++i)
      EXPECT_GE(contrast(readable_on(heat(static_cast<float>(i) / 10)), heat(static_cast<float>(i) / 10)), 4.5) << i;
  }
}

// WCAG 2.1, level AAA (1.4.6) for all that is read, and as much for the lines that things are told apart by; 4.5 for data.
TEST(Theme, HighContrastIsHigh) {
  constexpr double kText = 7, kData = 4.5;
  Stage stage({960, 600}, 1, ThemeKind::contrast);
  const Theme& t = theme();
  EXPECT_EQ(ImGui::GetStyle().FrameBorderSize, 1) << "fields and buttons have an edge";
  for (const ImU32 surface : {t.app, t.card}) {
    for (const ImU32 color : {t.text, t.dim, t.accent, t.accent_hover, t.good, t.warning, t.bad, t.border})
      EXPECT_GE(contrast(color, surface), kText) << std::hex << color;
    for (const ImU32 color : {t.accent, t.good, t.warning, t.bad, t.dim}) {
      const ImU32 tint = over(with_alpha(color, 0.16f), surface);  // a chip
      EXPECT_GE(contrast(color, tint), kText) << std::hex << color;
      EXPECT_GE(contrast(t.text, tint), kText) << std::hex << color << ", a banner";
    }
    EXPECT_GE(contrast(t.text, over(t.accent_soft, surface)), kText);
    EXPECT_GE(contrast(over(t.grid, surface), surface), 3) << "behind the data, and seen";
    for (const ImU32 line : t.series) EXPECT_GE(contrast(line, surface), kData) << std::hex << line;
    for (int i = 0; i <= 10; ++i) EXPECT_GE(contrast(heat(static_cast<float>(i) / 10), surface), kData) << i;
  }
  for (const ImU32 surface : {t.raised, t.hover, t.pressed}) EXPECT_GE(contrast(t.text, surface), kText);
  for (const ImU32 surface : {t.accent, t.accent_hover}) EXPECT_GE(contrast(t.on_accent, surface), kText);
  for (int i = 0; i <= 10; ++i) {
    const ImU32 cell = heat(static_cast<float>(i) / 10);
    EXPECT_GE(contrast(readable_on(cell), cell), kText) << i;
    if (i > 0) {
      EXPECT_GT(contrast(cell, t.app), contrast(heat(static_cast<float>(i - 1) / 10), t.app)) << "more is brighter";
    }
  }
}

TEST(Theme, KindsHaveNames) {
  for (const ThemeKind kind : kThemes) EXPECT_EQ(theme_of_name(name_of(kind)), kind);
  EXPECT_FALSE(theme_of_name("pink"));
}

TEST(Theme, WhatCannotActNowCanBeRead) {
  for (const ThemeKind kind : kThemes) {
    Stage stage({960, 600}, 1, kind);
    const Theme& t = theme();
    const float alpha = ImGui::GetStyle().DisabledAlpha;
    for (const ImU32 surface : {t.app, t.card}) {
      EXPECT_GE(contrast(over(with_alpha(t.text, alpha), surface), surface), 4.5) << "a menu item";
      const ImU32 frame = over(with_alpha(t.raised, alpha), surface);
      EXPECT_GE(contrast(over(with_alpha(t.text, alpha), frame), frame), 4.5) << "a field";
    }
    // What a button really draws: its frame comes first, its text last.
    for (const bool primary : {false, true})
      for (const bool enabled : {false, true}) {
        ImU32 frame = 0, text = 0;
        stage.extra = [&] {
          ImGui::Begin("card");
          ImDrawList* list = ImGui::GetWindowDrawList();
          const int before = list->VtxBuffer.Size;
          button("Profile 20 steps", {.primary = primary, .enabled = enabled});
          if (list->VtxBuffer.Size > before) {
            frame = list->VtxBuffer[before].col;
            text = list->VtxBuffer.back().col;
          }
          ImGui::End();
        };
        stage.frames();
        ASSERT_NE(frame, text);
        const ImU32 back = over(frame, t.card);
        EXPECT_GE(contrast(over(text, back), back), 4.5) << "primary " << primary << ", enabled " << enabled;
      }
  }
}

// How people without one kind of cone see a colour: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-
// based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, severity 1.0, on linear RGB.
struct Vision {
  const char* name;
  double matrix[3][3];
};
constexpr Vision kVisions[] = {
    {"usual", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {"protanopia", {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
    {"deuteranopia", {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
    {"tritanopia", {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}},
};

std::array<double, 3> times(const double (&matrix)[3][3], const std::array<double, 3>& v) {
  std::array<double, 3> out{};
  for (size_t i = 0; i < 3; ++i) out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return out;
}

// In CIE L*a*b* (D65), where equal distances look about equally different.
std::array<double, 3> lab_of(ImU32 color, const Vision& vision) {
  constexpr double kToXyz[3][3] = {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}};
  constexpr double kWhite[3] = {0.95047, 1, 1.08883};
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  const ImVec4 v = vec(color);
  std::array<double, 3> rgb = times(vision.matrix, {linear(v.x), linear(v.y), linear(v.z)});
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  std::array<double, 3> f = times(kToXyz, rgb);
  for (size_t i = 0; i < 3; ++i) {
    const double t = f[i] / kWhite[i];
    f[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double distance(ImU32 a, ImU32 b, const Vision& vision) {
  const auto x = lab_of(a, vision), y = lab_of(b, vision);
  return std::sqrt(std::pow(x[0] - y[0], 2) + std::pow(x[1] - y[1], 2) + std::pow(x[2] - y[2], 2));
}

// Two large areas side by side differ just noticeably at a distance of 2.3 (M. Mahy et al., 1994). Lines are thin, apart
// from each other and looked up in a legend, so more than six times that is asked for.
TEST(Theme, LinesAreToldApartByColourBlindPeople) {
  constexpr double kLeast = 15;
  EXPECT_NEAR(distance(IM_COL32(255, 0, 0, 255), IM_COL32(0, 255, 0, 255), kVisions[0]), 170.6, 0.5) << "red and green, as published";
  EXPECT_LT(distance(IM_COL32(190, 90, 0, 255), IM_COL32(115, 125, 0, 255), kVisions[2]), kLeast) << "these two they mix up";
  EXPECT_GT(distance(IM_COL32(190, 90, 0, 255), IM_COL32(115, 125, 0, 255), kVisions[0]), 2 * kLeast);
  for (const ThemeKind kind : kThemes) {
    Stage stage({960, 600}, 1, kind);
    const auto& series = theme().series;
    for (const Vision& vision : kVisions)
      for (size_t i = 0; i < series.size(); ++i)
        for (size_t j = i + 1; j < series.size(); ++j)
          EXPECT_GE(distance(series[i], series[j], vision), kLeast)
              << i << " and " << j << " with " << vision.name << ", " << name_of(kind);
  }
}

// Nor is a colour ever the only sign: compared runs have a marker each, the second four are dashed, and a state has an icon
// and a word.
TEST(Theme, ColourIsNeverTheOnlySign) {
  Stage stage;
  std::set<std::pair<ImU32, bool>> signs;
  std::set<Marker> markers;
  int with_dash = 0;
  for (int slot = 0; slot < static_cast<int>(theme().series.size()); ++slot) {
    signs.emplace(theme().series[static_cast<size_t>(slot)], dashed(slot));
    with_dash += dashed(slot);
    markers.insert(marker_of(slot));
  }
  EXPECT_EQ(markers.size(), theme().series.size());
  EXPECT_FALSE(markers.contains(Marker::none));
  EXPECT_EQ(signs.size(), theme().series.size());
  EXPECT_EQ(with_dash, 4);
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(Phase::diverged); ++i) {
    const PhaseLook look = look_of(static_cast<Phase>(i));
    EXPECT_NE(look.icon, Icon::none) << look.text;
    EXPECT_TRUE(words.insert(look.text).second) << look.text;
  }
  // Signs of what happened: each kind draws another shape.
  std::set<std::vector<std::pair<int, int>>> shapes;
  stage.extra = [&] {
    ImDrawList* list = ImGui::GetForegroundDrawList();
    for (int kind = 0; kind <= Mark::segment; ++kind) {
      const int before = list->VtxBuffer.Size;
      draw_mark_sign(list, static_cast<Mark::Kind>(kind), {100, 100}, 8);
      std::vector<std::pair<int, int>> shape;
      for (int i = before; i < list->VtxBuffer.Size; ++i)
        shape.emplace_back(static_cast<int>(std::lround(list->VtxBuffer[i].pos.x)),
                           static_cast<int>(std::lround(list->VtxBuffer[i].pos.y)));
      shapes.insert(shape);
    }
  };
  stage.frames(1);
  EXPECT_EQ(shapes.size(), static_cast<size_t>(Mark::segment) + 1);
}

TEST(Theme, AllMeasuresGrowWithTheScale) {
  Stage stage;
  apply_theme(ThemeKind::dark, 1);
  const ImGuiStyle normal = ImGui::GetStyle();
  apply_theme(ThemeKind::dark, 2);
  const ImGuiStyle twice = ImGui::GetStyle();
  EXPECT_EQ(twice.FramePadding.x, 2 * normal.FramePadding.x);
  EXPECT_EQ(twice.ScrollbarSize, 2 * normal.ScrollbarSize);
  EXPECT_EQ(twice.FontScaleMain, 2 * normal.FontScaleMain);
  apply_theme(ThemeKind::dark, 1);  // and back, without a trace
  EXPECT_EQ(ImGui::GetStyle().FramePadding.x, normal.FramePadding.x);
}

}  // namespace
}  // namespace comera::studio
