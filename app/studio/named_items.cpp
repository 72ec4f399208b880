#include "app/studio/named_items.h"

#include <imgui_internal.h>

namespace comera::studio {
namespace {

std::vector<NamedItem>* g_items = nullptr;

}  // namespace

void collect_items(std::vector<NamedItem>* into) { g_items = into; }

bool collects_items() { return g_items != nullptr; }

void name_item(const std::string& name) {
  if (!g_items) return;
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  if (context.CurrentWindow->Hidden || (context.LastItemData.ItemFlags & ImGuiItemFlags_Disabled)) return;
  ImRect seen = context.LastItemData.Rect;
  seen.ClipWith(context.CurrentWindow->ClipRect);
  if (seen.GetWidth() < 1 || seen.GetHeight() < 1) return;
  g_items->push_back({name, seen.Min, seen.Max});
}

}  // namespace comera::studio
