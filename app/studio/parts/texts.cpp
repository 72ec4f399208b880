#include "app/studio/parts/texts.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/studio/parts/named_items.h"
#include "app/studio/theme.h"

namespace comera::studio {

void small_beside(const std::string& text, ImU32 color) {
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  push_small();
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float base = ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + std::round((line - ImGui::GetTextLineHeight()) * 0.8f);
  ImGui::GetWindowDrawList()->AddText({at.x, at.y + base}, color, text.c_str());
  ImGui::PopFont();
  ImGui::Dummy({size.x, line});
}

void text_dim(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopStyleColor();
}

void text_wrapped(const std::string& text, ImU32 color) {
  ImGui::PushTextWrapPos(0);
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  name_item("says:" + text);
}

void text_right(const std::string& text, float right, ImU32 color) {
  const float width = ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - width));
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void beside_or_below(float width, float gap) {
  const ImGuiWindow* window = ImGui::GetCurrentWindow();
  const float begin = window->DC.CursorPosPrevLine.x + (gap < 0 ? ImGui::GetStyle().ItemSpacing.x : gap);
  if (begin + width <= ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x) ImGui::SameLine(0, gap);
}

void text_fit(const std::string& text, float width, ImU32 color) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  const ImVec2 at = ImGui::GetCursorScreenPos(), size = ImGui::CalcTextSize(text.c_str());
  const float height = ImGui::GetTextLineHeight();
  ImGui::RenderTextEllipsis(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset},
                            {at.x + width, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + height}, at.x + width,
                            text.c_str(), text.c_str() + text.size(), &size);
  ImGui::PopStyleColor();
  ImGui::Dummy({std::min(width, size.x), height});
  if (size.x > width) tooltip(text.c_str());
}

std::string whole_label(std::string text) {
  for (size_t at = 0; (at = text.find("##", at)) != std::string::npos; ++at) text.insert(at + 1, 1, '\r');
  return text;
}

void tooltip(const char* text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort | ImGuiHoveredFlags_AllowWhenDisabled)) return;
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushTextWrapPos(em(24));
  ImGui::TextUnformatted(text);
  ImGui::PopTextWrapPos();
  if (collects_items()) name_item(std::string("tip:") + text);
  ImGui::EndTooltip();
}

void told(const char* id, const std::string& text, const std::string& value) {
  if (!text.empty()) tooltip(text.c_str());
  std::vector<Copied> what;
  if (!value.empty()) what.push_back({"Copy value", value});
  if (!text.empty()) what.push_back({"Copy tooltip", value.empty() ? text : value + "\n" + text});
  ImGui::PushID(id);
  copy_menu(what);
  ImGui::PopID();
}

bool focus_area(const char* id, ImVec2 at, ImVec2 size) {
  ImGui::SetCursorPos(at);
  const bool pressed = ImGui::InvisibleButton(id, {std::max(1.0f, size.x), std::max(1.0f, size.y)}, ImGuiButtonFlags_EnableNav);
  ImGui::RenderNavCursor({ImGui::GetItemRectMin(), ImGui::GetItemRectMax()}, ImGui::GetItemID());
  return pressed;
}

bool led_by_keyboard() {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  return context.NavHighlightItemUnderNav && context.NavCursorVisible;
}

void copy_menu(const std::vector<Copied>& what, bool over) {
  static std::vector<Copied> opened_with;  // static, because only one menu is open at a time
  constexpr const char* kMenu = "copy-menu";
  const bool clicked = over && ImGui::IsMouseReleased(ImGuiMouseButton_Right) && !mouse_dragged(ImGuiMouseButton_Right);
  const ImGuiContext& context = *ImGui::GetCurrentContext();  // the Menu key was pressed on the focused item
  const bool by_key = ImGui::IsItemFocused() && context.NavOpenContextMenuItemId == context.LastItemData.ID;
  if (!what.empty() && (clicked || by_key)) {
    opened_with = what;
    ImGui::OpenPopup(kMenu);
  }
  if (!ImGui::BeginPopup(kMenu)) return;
  for (const Copied& one : opened_with) {
    if (ImGui::MenuItem(one.title.c_str(), nullptr, false, !one.text.empty())) ImGui::SetClipboardText(one.text.c_str());
    name_item("copy:" + one.title);
  }
  ImGui::EndPopup();
}

bool mouse_dragged(int button) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!io.MouseDown[button] && !io.MouseReleased[button]) return false;  // ImGui still has the distance of an earlier drag
  return io.MouseDragMaxDistanceSqr[button] >= io.MouseDragThreshold * io.MouseDragThreshold;
}

void help_marker(const char* text) {
  const float font = ImGui::GetFontSize(), r = font * 0.42f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 center(at.x + r, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + font * 0.55f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircle(center, r, theme().dim, 0, std::max(1.0f, font * 0.06f));
  push_small();
  const ImVec2 size = ImGui::CalcTextSize("?");
  list->AddText({center.x - size.x / 2, center.y - size.y / 2}, theme().dim, "?");
  ImGui::PopFont();
  ImGui::Dummy({2 * r, font});
  tooltip(text);
}

}  // namespace comera::studio
