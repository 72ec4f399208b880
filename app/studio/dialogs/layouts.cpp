// Saved layouts: save the current one, rename and delete saved ones.
#include <cstdio>

#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/saved_layouts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

bool name_field(const char* id, std::string& name, const char* hint) {
  char text[kLongestLayoutName + 1];
  std::snprintf(text, sizeof text, "%s", name.c_str());
  const bool entered = ImGui::InputTextWithHint(id, hint, text, sizeof text, ImGuiInputTextFlags_EnterReturnsTrue);
  name = text;
  return entered;
}

// One row: editable name and buttons. False if the list changed.
bool row(UiState& ui, const SavedLayout& layout, float full) {
  const float square = ImGui::GetFrameHeight(), gap = em(0.4f), show = button_width("Show", {});
  ImGui::SetNextItemWidth(full - show - square - 2 * gap);
  std::string name = ui.dialogs.renamed == layout.name ? ui.dialogs.layout_name_new : layout.name;
  name_field("##name", name, "Name");
  name_item("layout:" + layout.name);
  const bool done = ImGui::IsItemDeactivatedAfterEdit();
  if (ImGui::IsItemActive() || done) {
    ui.dialogs.renamed = layout.name;
    ui.dialogs.layout_name_new = name;
  }
  ImGui::SameLine(0, gap);
  if (button(("Show###show-layout:" + layout.name).c_str())) {
    choose_saved_layout(ui, std::string(layout.name));
    close_dialog(ui);
    return false;
  }
  ImGui::SameLine(0, gap);
  if (button(("###delete-layout:" + layout.name).c_str(), {.icon = Icon::cross, .tooltip = "Delete", .size = {square, square}})) {
    delete_layout(ui, std::string(layout.name));
    return false;
  }
  if (!done) return true;
  ui.dialogs.renamed.clear();
  rename_layout(ui, std::string(layout.name), name);  // does nothing if the name is taken
  return false;
}

}  // namespace

void draw_layouts(UiState& ui) {
  Dialogs& state = ui.dialogs;
  if (state.appearing) {
    const SavedLayout* shown = saved_layout(ui, ui.arrangement);
    state.layout_name = shown ? shown->name : "";
    state.renamed.clear();
    ImGui::SetKeyboardFocusHere();
  }
  push_small();
  ImGui::PushTextWrapPos(0);
  text_dim("Saves open panels and their places under a name. The menus Window and View list saved layouts.");
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  const std::string no = no_saving(ui, state.layout_name);
  const bool there = saved_layout(ui, arrangement_of(state.layout_name)) != nullptr;
  const char* label = there ? "Replace###save-layout" : "Save###save-layout";
  const ButtonLook look{.icon = Icon::save,
                        .primary = true,
                        .enabled = no.empty(),
                        .tooltip = there ? "Replaces the layout of this name with the current panels" : "Saves the current panels",
                        .why_not = no.c_str()};
  const float full = ImGui::GetContentRegionAvail().x, gap = ImGui::GetStyle().ItemSpacing.x;
  ImGui::SetNextItemWidth(full - button_width(label, look) - gap);
  const bool entered = name_field("##layout", state.layout_name, "Name of the layout");
  name_item("layout-name");
  ImGui::SameLine();
  const bool pressed = button(label, look);
  if ((entered || pressed) && no.empty()) {
    save_layout(ui, state.layout_name);
    return close_dialog(ui);
  }
  if (ui.layouts.empty()) return;
  ImGui::Dummy({0, em(0.3f)});
  push_small();
  text_dim("Saved layouts");
  ImGui::PopFont();
  for (size_t i = 0; i < ui.layouts.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const bool same = row(ui, ui.layouts[i], full);
    ImGui::PopID();
    if (!same) return;
  }
}

}  // namespace comera::studio
