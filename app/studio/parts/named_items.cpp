#include "app/studio/parts/named_items.h"

#include <imgui_internal.h>

namespace comera::studio {
namespace {

std::vector<NamedItem>* g_items = nullptr;

}  // namespace

void collect_items(std::vector<NamedItem>* into) { g_items = into; }

bool collects_items() { return g_items != nullptr; }

void name_item(const std::string& name) {
  if (!g_items) return;
  const ImGuiLastItemData& item = ImGui::GetCurrentContext()->LastItemData;
  if (!(item.ItemFlags & ImGuiItemFlags_Disabled)) name_area(name, item.Rect.Min, item.Rect.Max);
}

void name_area(const std::string& name, ImVec2 low, ImVec2 high) {
  if (!g_items) return;
  const ImGuiWindow* window = ImGui::GetCurrentContext()->CurrentWindow;
  if (window->Hidden) return;
  ImRect seen(low, high);
  seen.ClipWith(window->ClipRect);
  if (seen.GetWidth() < 1 || seen.GetHeight() < 1) return;
  g_items->push_back({name, seen.Min, seen.Max});
}

void name_typing() {
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  if (g_items && imgui.IO.WantTextInput) g_items->push_back({"typing:" + std::to_string(imgui.ActiveId), {}, {}});
}

}  // namespace comera::studio
