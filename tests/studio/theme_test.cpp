#include "app/studio/widgets.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

TEST(Theme, TextCanBeRead) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
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

// A colour with alpha over an opaque one.
ImU32 over(ImU32 color, ImU32 back) {
  const float alpha = vec(color).w;
  return mix(back, color | IM_COL32(0, 0, 0, 255), alpha) | IM_COL32(0, 0, 0, 255);
}

TEST(Theme, WhatCannotActNowCanBeRead) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
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
