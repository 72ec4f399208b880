#include "app/studio/parts/inputs.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/studio/key_bindings.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/theme.h"

namespace comera::studio {

namespace {

constexpr float kIconShare = 0.72f;  // of the font size

float visible_width(const char* label) {
  const char* end = ImGui::FindRenderedTextEnd(label);
  return end > label ? ImGui::CalcTextSize(label, end).x : 0;
}

}  // namespace

float button_width(const char* label, const ButtonLook& look) {
  if (look.size.x > 0) return look.size.x;
  const float text = visible_width(label), font = ImGui::GetFontSize();
  float width = text + 2 * ImGui::GetStyle().FramePadding.x;
  if (look.icon != Icon::none) width += font * kIconShare + (text > 0 ? font * 0.45f : 0);
  return std::max(width, ImGui::GetFrameHeight());
}

bool button(const char* label, const ButtonLook& look) {
  const Theme& t = theme();
  const ImVec2 size(button_width(label, look), look.size.y > 0 ? look.size.y : ImGui::GetFrameHeight());
  const bool primary = look.primary && look.enabled;  // disabled buttons do not have the accent colour
  ImGui::BeginDisabled(!look.enabled);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (primary) {
    ImGui::PushStyleColor(ImGuiCol_Button, t.accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, t.accent_hover);
    ImGui::PushStyleColor(ImGuiCol_ButtonActive, t.accent_hover);
  }
  ImGui::PushID(label);
  const bool pressed = ImGui::Button("##button", size);
  ImGui::PopID();
  if (collects_items()) {
    const char* id = std::strstr(label, "###");
    name_item(id ? id + 3 : label);
  }
  if (primary) ImGui::PopStyleColor(3);
  const float font = ImGui::GetFontSize(), text = visible_width(label);
  const float icon = look.icon == Icon::none ? 0 : font * kIconShare;
  const float gap = icon > 0 && text > 0 ? font * 0.45f : 0;
  const ImU32 color = with_alpha(primary ? t.on_accent : t.text, look.enabled ? 1 : ImGui::GetStyle().DisabledAlpha);
  float x = at.x + (size.x - icon - gap - text) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (icon > 0) draw_icon(list, look.icon, {x + icon / 2, at.y + size.y / 2}, icon, color);
  if (text > 0) list->AddText({x + icon + gap, std::round(at.y + (size.y - font) / 2)}, color, label, ImGui::FindRenderedTextEnd(label));
  ImGui::EndDisabled();
  const char* tip = look.enabled ? look.tooltip : look.why_not ? look.why_not : look.tooltip;
  if (tip && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort)) {
    const std::string keys = tip == look.tooltip ? key_text(look.keys) : "";
    ImGui::SetTooltip("%s%s", tip, keys.empty() ? "" : (" (" + keys + ")").c_str());
  }
  return pressed && look.enabled;
}

double slider_value(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::atof(text);
}

bool slim_slider(const char* id, double& value, double low, double high, bool logarithmic, float width) {
  // The slider moves over 0..1. If a logarithmic slider includes 0, its left end is 0, followed by four decades.
  const bool zero = logarithmic && low <= 0;
  const double least = zero ? high * 1e-4 : low;
  const auto position_of = [&](double v) {
    if (!logarithmic) return (v - low) / (high - low);
    if (zero && v < least * 0.5) return 0.0;
    const double share = std::log(std::max(v, least) / least) / std::log(high / least);
    return zero ? 0.03 + 0.97 * share : share;
  };
  const auto value_at = [&](double position) {
    if (!logarithmic) return low + (high - low) * position;
    if (zero && position < 0.02) return 0.0;
    return least * std::pow(high / least, zero ? std::max(0.0, position - 0.03) / 0.97 : position);
  };
  const Theme& t = theme();
  auto position = static_cast<float>(std::clamp(position_of(value), 0.0, 1.0));
  const float height = em(1.15f), grab = em(0.9f);
  const ImU32 none = IM_COL32(0, 0, 0, 0);
  for (const ImGuiCol color :
       {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive})
    ImGui::PushStyleColor(color, none);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, std::max(0.0f, (height - ImGui::GetFontSize()) / 2)));
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, grab);
  ImGui::SetNextItemWidth(width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool changed = ImGui::SliderFloat(id, &position, 0, 1, "", ImGuiSliderFlags_NoInput | ImGuiSliderFlags_NoRoundToFormat);
  const bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(5);
  const float alpha = ImGui::GetStyle().Alpha, middle = at.y + height / 2, line = em(0.13f);
  const float x = at.x + 2 + grab / 2 + (width - 4 - grab) * position;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, middle - line}, {at.x + width, middle + line}, with_alpha(t.pressed, alpha), line);
  list->AddRectFilled({at.x, middle - line}, {x, middle + line}, with_alpha(t.accent, alpha), line);
  list->AddCircleFilled({x, middle}, grab / 2 * (lit ? 1.1f : 1), with_alpha(lit ? t.accent_hover : t.accent, alpha));
  list->AddCircleFilled({x, middle}, grab * 0.2f, with_alpha(t.card, alpha));
  if (changed) value = value_at(position);
  return changed;
}

float checkbox_width(const char* label) {
  return ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x + std::ceil(ImGui::CalcTextSize(label).x);
}

bool toggle(const char* id, bool& on) {
  const Theme& t = theme();
  const float height = ImGui::GetFrameHeight(), track = std::round(height * 0.68f), width = track * 1.8f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = ImGui::InvisibleButton(id, {width, height}, ImGuiButtonFlags_EnableNav);
  if (pressed) on = !on;
  const bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  const float y = at.y + height / 2, r = track / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y - r}, {at.x + width, y + r}, on ? (lit ? t.accent_hover : t.accent) : (lit ? t.pressed : t.hover), r);
  list->AddCircleFilled({on ? at.x + width - r : at.x + r, y}, r * 0.72f, on ? t.on_accent : t.text);
  ImGui::RenderNavCursor({at, {at.x + width, at.y + height}}, ImGui::GetItemID());
  ImGui::SameLine(0, em(0.5f));
  ImGui::AlignTextToFramePadding();
  text_dim(on ? "on" : "off");
  return pressed;
}

bool segmented(const char* id, const char* const* labels, int count, int& chosen) {
  const Theme& t = theme();
  bool changed = false;
  ImGui::PushID(id);
  const bool in_menu = ImGui::GetCurrentWindow()->DC.LayoutType == ImGuiLayoutType_Horizontal;  // menus are laid out in one line
  for (int i = 0; i < count; ++i) {
    if (i > 0 && !in_menu) ImGui::SameLine(0, em(0.15f));
    const bool on = i == chosen;
    ImGui::PushStyleColor(ImGuiCol_Button, on ? t.accent_soft : IM_COL32(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, on ? t.text : t.dim);
    if (ImGui::Button(labels[i]) && !on) {
      chosen = i;
      changed = true;
    }
    name_item(std::string("choice:") + labels[i]);
    ImGui::PopStyleColor(2);
  }
  ImGui::PopID();
  return changed;
}

}  // namespace comera::studio
