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
