#include "app/studio/parts/cards.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {

bool begin_card(const char* id, ImVec2 size, ImGuiChildFlags flags, ImGuiWindowFlags window_flags) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().card);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.8f), em(0.65f)));
  // Tab and the arrow keys move across cards as if these were one window.
  constexpr ImGuiChildFlags kCard = ImGuiChildFlags_Borders | ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened;
  const bool open = ImGui::BeginChild(id, size, kCard | flags, window_flags);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  return open;
}

void end_card() { ImGui::EndChild(); }

void card_title(const char* title, const char* help, float width) {
  push_title();
  const float room = std::max(em(1), width - (help ? em(2) : 0));
  if (width > 0 && ImGui::CalcTextSize(title).x > room)
    text_fit(title, room, theme().text);
  else
    ImGui::TextUnformatted(title);
  ImGui::PopFont();
  if (help) {
    ImGui::SameLine();
    help_marker(help);
  }
}

float chip_width(const char* text, Icon icon) {
  push_small();
  const float width = ImGui::CalcTextSize(text).x + em(1.1f) + (icon == Icon::none ? 0 : em(1.0f));
  ImGui::PopFont();
  return width;
}

void chip(const char* text, ImU32 color, Icon icon) {
  const float width = chip_width(text, icon), line = ImGui::GetTextLineHeight();
  push_small();
  const float font = ImGui::GetFontSize(), height = std::round(font * 1.5f);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // Centred on the current line of text, whatever its frame padding is.
  const float y = at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + (line - height) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y}, {at.x + width, y + height}, with_alpha(color, 0.16f), height / 2);
  float x = at.x + em(0.55f);
  if (icon != Icon::none) {
    draw_icon(list, icon, {x + font * 0.36f, y + height / 2}, font * 0.72f, color);
    x += em(1.0f);
  }
  list->AddText({x, std::round(y + (height - font) / 2)}, color, text);
  ImGui::PopFont();
  ImGui::Dummy({width, line});
}

void stat(const char* caption, const std::string& value, const char* under, ImU32 color) {
  ImGui::BeginGroup();
  push_small();
  text_dim(caption);
  ImGui::PopFont();
  push_numbers(1.2f);
  ImGui::PushStyleColor(ImGuiCol_Text, color ? color : theme().text);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (under) {
    push_small();
    text_dim(under);
    ImGui::PopFont();
  }
  ImGui::EndGroup();
}

bool empty_state(Icon icon, const char* title, const char* text, const char* action, Icon action_icon, const char* other,
                 bool* other_pressed) {
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float wrap = std::max(em(6), std::min(space.x - em(1), em(30)));
  push_small();
  const ImVec2 size = ImGui::CalcTextSize(text, nullptr, false, wrap);
  ImGui::PopFont();
  // The title wraps in narrow places.
  const float title_wrap = std::max(em(6), space.x - em(0.5f));
  push_title();
  const ImVec2 title_size = ImGui::CalcTextSize(title, nullptr, false, title_wrap);
  const float more_lines = title_size.y - ImGui::GetFontSize();
  ImGui::PopFont();
  const bool with_icon = space.y > em(7);
  const float below = action ? ImGui::GetFrameHeight() + em(1) : 0;
  const float height = size.y + em(1.6f) + more_lines + (with_icon ? em(3) : 0) + below;
  const ImVec2 at = ImGui::GetCursorPos();
  float y = at.y + std::max(0.0f, (space.y - height) / 2);
  if (with_icon) {
    const ImVec2 screen = ImGui::GetCursorScreenPos();
    draw_icon(ImGui::GetWindowDrawList(), icon, {screen.x + space.x / 2, screen.y + y - at.y + em(1.1f)}, em(1.8f),
              with_alpha(theme().dim, 0.7f));
    y += em(3);
  }
  push_title();
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - title_size.x) / 2), y});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + title_wrap);
  ImGui::TextUnformatted(title);
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  y += more_lines;
  push_small();
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - size.x) / 2), y + em(1.7f)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + wrap);
  text_dim(text);
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  if (!action) return false;
  const ButtonLook look{.icon = action_icon, .primary = true};
  const float gap = ImGui::GetStyle().ItemSpacing.x, both = button_width(action, look) + (other ? gap + button_width(other, {}) : 0);
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - both) / 2), ImGui::GetCursorPosY() + em(0.6f)});
  const bool pressed = button(action, look);
  if (!other) return pressed;
  if (both <= space.x) ImGui::SameLine();
  *other_pressed = button(other);
  return pressed;
}

float banner_height(const std::string& text, float width) {
  const float pad = em(0.6f), icon = em(0.95f);
  return ImGui::CalcTextSize(text.c_str(), nullptr, false, width - 3 * pad - icon).y + 2 * pad;
}

void banner(Level level, const std::string& text) {
  const Theme& t = theme();
  const ImU32 color = level == Level::error ? t.bad : level == Level::warning ? t.warning : level == Level::good ? t.good : t.accent;
  const float width = ImGui::GetContentRegionAvail().x, pad = em(0.6f), icon = em(0.95f);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, width - 3 * pad - icon);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + size.y + 2 * pad}, with_alpha(color, 0.14f), ImGui::GetStyle().FrameRounding);
  const Icon shape = level == Level::error || level == Level::warning ? Icon::warning : level == Level::good ? Icon::check : Icon::dot;
  draw_icon(list, shape, {at.x + pad + icon / 2, at.y + pad + ImGui::GetFontSize() / 2}, icon, color);
  list->AddText(nullptr, 0, {at.x + 2 * pad + icon, at.y + pad}, t.text, text.c_str(), nullptr, width - 3 * pad - icon);
  ImGui::Dummy({width, size.y + 2 * pad});
  name_item("says:" + text);
}

void progress_bar(float share, ImVec2 size, ImU32 color, const std::string& overlay) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rounding = std::min(size.y / 2, ImGui::GetStyle().FrameRounding);
  const ImVec2 end(at.x + size.x, at.y + size.y);
  list->AddRectFilled(at, end, theme().raised, rounding);
  if (share < 0) {
    const float part = size.x * 0.22f, phase = static_cast<float>(std::fmod(ImGui::GetTime() / 1.6, 1.0));
    const float x = at.x - part + (size.x + part) * phase;
    list->PushClipRect(at, end, true);
    list->AddRectFilled({x, at.y}, {x + part, end.y}, with_alpha(color, 0.8f), rounding);
    list->PopClipRect();
  }
  share = std::clamp(share, 0.0f, 1.0f);
  if (share > 0) {
    list->PushClipRect(at, {at.x + size.x * share, end.y}, true);
    list->AddRectFilled(at, end, color, rounding);
    list->PopClipRect();
  }
  if (!overlay.empty()) {
    const ImVec2 text = ImGui::CalcTextSize(overlay.c_str());
    const ImVec2 where(std::round(at.x + (size.x - text.x) / 2), std::round(at.y + (size.y - text.y) / 2));
    // Drawn twice with clipping, so that each part contrasts with its background.
    list->PushClipRect({at.x + size.x * share, at.y}, end, true);
    list->AddText(where, theme().text, overlay.c_str());
    list->PopClipRect();
    list->PushClipRect(at, {at.x + size.x * share, end.y}, true);
    list->AddText(where, readable_on(color), overlay.c_str());
    list->PopClipRect();
  }
  ImGui::Dummy(size);
}

}  // namespace comera::studio
