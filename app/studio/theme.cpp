#include "app/studio/theme.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

// The bytes of the fonts; see cmake/window.cmake.
extern "C" {
extern const unsigned char comera_font_text_begin[], comera_font_text_end[];
extern const unsigned char comera_font_bold_begin[], comera_font_bold_end[];
extern const unsigned char comera_font_numbers_begin[], comera_font_numbers_end[];
}

namespace comera::studio {
namespace {

constexpr float kFontSize = 15;

Fonts g_fonts;

ImFont* add_font(const unsigned char* begin, const unsigned char* end, const char* name) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  std::snprintf(config.Name, sizeof config.Name, "%s", name);
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<unsigned char*>(begin), static_cast<int>(end - begin), kFontSize, &config);
}

}  // namespace

const Fonts& fonts() { return g_fonts; }

void load_fonts() {
  g_fonts.text = add_font(comera_font_text_begin, comera_font_text_end, "text");
  g_fonts.bold = add_font(comera_font_bold_begin, comera_font_bold_end, "bold");
  g_fonts.numbers = add_font(comera_font_numbers_begin, comera_font_numbers_end, "numbers");
}

void apply_theme(ThemeKind kind, float scale) {
  choose_theme(kind);
  const Theme& t = theme();
  ImGuiStyle style;
  style.FontSizeBase = kFontSize;
  style.FontScaleMain = scale;
  style.WindowPadding = {12, 12};
  style.FramePadding = {10, 5};
  style.ItemSpacing = {8, 7};
  style.ItemInnerSpacing = {6, 5};
  style.CellPadding = {8, 5};
  style.IndentSpacing = 16;
  style.ScrollbarSize = 11;
  style.GrabMinSize = 12;
  style.WindowRounding = 8;
  style.ChildRounding = 8;
  style.FrameRounding = 6;
  style.PopupRounding = 8;
  style.ScrollbarRounding = 8;
  style.GrabRounding = 6;
  style.TabRounding = 6;
  style.TabBarBorderSize = 0;
  style.TabBarOverlineSize = 2;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 1;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = kind == ThemeKind::contrast ? 1 : 0;
  style.DockingSeparatorSize = 6;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.SeparatorTextBorderSize = 1;
  style.DisabledAlpha = 0.65f;  // disabled text stays readable: tests/studio/theme_test.cpp
  style.HoverDelayShort = 0.25f;
  style.ScaleAllSizes(scale);
  ImVec4* c = style.Colors;
  const auto set = [&](ImGuiCol index, ImU32 color) { c[index] = vec(color); };
  const ImU32 none = IM_COL32(0, 0, 0, 0);
  set(ImGuiCol_Text, t.text);
  set(ImGuiCol_TextDisabled, t.dim);
  set(ImGuiCol_WindowBg, t.app);
  set(ImGuiCol_ChildBg, none);
  set(ImGuiCol_PopupBg, t.card);
  set(ImGuiCol_Border, t.border);
  set(ImGuiCol_BorderShadow, none);
  set(ImGuiCol_FrameBg, t.raised);
  set(ImGuiCol_FrameBgHovered, t.hover);
  set(ImGuiCol_FrameBgActive, t.pressed);
  set(ImGuiCol_TitleBg, t.app);
  set(ImGuiCol_TitleBgActive, t.app);
  set(ImGuiCol_TitleBgCollapsed, t.app);
  set(ImGuiCol_MenuBarBg, t.app);
  set(ImGuiCol_ScrollbarBg, none);
  set(ImGuiCol_ScrollbarGrab, t.hover);
  set(ImGuiCol_ScrollbarGrabHovered, t.pressed);
  set(ImGuiCol_ScrollbarGrabActive, t.pressed);
  set(ImGuiCol_CheckMark, t.accent);
  set(ImGuiCol_SliderGrab, with_alpha(t.accent, 0.5f));  // translucent, since the value is written over it
  set(ImGuiCol_SliderGrabActive, with_alpha(t.accent_hover, 0.6f));
  set(ImGuiCol_Button, t.raised);
  set(ImGuiCol_ButtonHovered, t.hover);
  set(ImGuiCol_ButtonActive, t.pressed);
  set(ImGuiCol_Header, t.accent_soft);
  set(ImGuiCol_HeaderHovered, t.hover);
  set(ImGuiCol_HeaderActive, t.pressed);
  set(ImGuiCol_Separator, t.border);
  set(ImGuiCol_SeparatorHovered, t.accent);
  set(ImGuiCol_SeparatorActive, t.accent);
  set(ImGuiCol_ResizeGrip, none);
  set(ImGuiCol_ResizeGripHovered, t.accent_soft);
  set(ImGuiCol_ResizeGripActive, t.accent);
  set(ImGuiCol_Tab, none);
  set(ImGuiCol_TabHovered, t.hover);
  set(ImGuiCol_TabSelected, t.raised);
  set(ImGuiCol_TabSelectedOverline, t.accent);
  set(ImGuiCol_TabDimmed, none);
  set(ImGuiCol_TabDimmedSelected, t.raised);
  set(ImGuiCol_TabDimmedSelectedOverline, none);
  set(ImGuiCol_DockingPreview, with_alpha(t.accent, 0.4f));
  set(ImGuiCol_DockingEmptyBg, t.app);
  set(ImGuiCol_PlotLines, t.accent);
  set(ImGuiCol_PlotHistogram, t.accent);
  set(ImGuiCol_TableHeaderBg, none);
  set(ImGuiCol_TableBorderStrong, t.border);
  set(ImGuiCol_TableBorderLight, with_alpha(t.border, 0.6f));
  set(ImGuiCol_TableRowBg, none);
  set(ImGuiCol_TableRowBgAlt, none);
  set(ImGuiCol_TextSelectedBg, with_alpha(t.accent, 0.35f));
  set(ImGuiCol_DragDropTarget, t.accent);
  set(ImGuiCol_NavCursor, t.accent);
  set(ImGuiCol_ModalWindowDimBg, IM_COL32(0, 0, 0, kind == ThemeKind::light ? 80 : 150));
  set(ImGuiCol_InputTextCursor, t.text);
  ImGui::GetStyle() = style;

  ImPlotStyle plot;
  plot.PlotBorderSize = 0;
  plot.MinorAlpha = 0;
  plot.MajorTickLen = {0, 0};
  plot.MinorTickLen = {0, 0};
  plot.PlotPadding = {4 * scale, 4 * scale};
  plot.LabelPadding = {6 * scale, 4 * scale};
  plot.LegendPadding = {4 * scale, 4 * scale};
  plot.LegendInnerPadding = {4 * scale, 2 * scale};
  plot.LegendSpacing = {8 * scale, 2 * scale};
  plot.MajorGridSize = {scale, scale};
  plot.PlotMinSize = {40 * scale, 30 * scale};
  const auto color = [&](ImPlotCol index, ImU32 value) { plot.Colors[index] = vec(value); };
  color(ImPlotCol_FrameBg, none);
  color(ImPlotCol_PlotBg, none);
  color(ImPlotCol_PlotBorder, t.border);
  color(ImPlotCol_LegendBg, with_alpha(t.card, 0.85f));
  color(ImPlotCol_LegendBorder, none);
  color(ImPlotCol_LegendText, t.dim);
  color(ImPlotCol_TitleText, t.text);
  color(ImPlotCol_InlayText, t.dim);
  color(ImPlotCol_AxisText, t.dim);
  color(ImPlotCol_AxisGrid, t.grid);
  color(ImPlotCol_AxisTick, none);
  color(ImPlotCol_AxisBg, none);
  color(ImPlotCol_AxisBgHovered, t.hover);
  color(ImPlotCol_AxisBgActive, t.pressed);
  color(ImPlotCol_Selection, t.accent);
  color(ImPlotCol_Crosshairs, t.dim);
  ImPlot::GetStyle() = plot;
}

float em(float count) { return std::round(ImGui::GetFontSize() * count); }

ImU32 diverging(float value) {
  // From half the range on, the full colour becomes brighter on dark themes and darker on light ones, so that halves and ends also differ
  // in lightness.
  const bool dark = theme_kind() != ThemeKind::light;
  const auto sample = [](float at) { return ImGui::ColorConvertFloat4ToU32(ImPlot::SampleColormap(at, ImPlotColormap_RdBu)); };
  const float middle = dark ? 0.12f : 0.28f, end = dark ? 0.3f : 0.06f, size = std::min(1.0f, std::abs(value));
  const auto side = [&](float at) { return sample(value < 0 ? 1 - at : at); };
  return size < 0.5f ? mix(theme().raised, side(middle), 2 * size) : mix(side(middle), side(end), 2 * size - 1);
}

void push_small() { ImGui::PushFont(g_fonts.text, ImGui::GetStyle().FontSizeBase * 0.87f); }
void push_title() { ImGui::PushFont(g_fonts.bold, ImGui::GetStyle().FontSizeBase); }
void push_large() { ImGui::PushFont(g_fonts.bold, ImGui::GetStyle().FontSizeBase * 1.7f); }
void push_numbers(float size) { ImGui::PushFont(g_fonts.numbers, ImGui::GetStyle().FontSizeBase * size); }

}  // namespace comera::studio
