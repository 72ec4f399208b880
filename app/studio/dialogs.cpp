#include "app/studio/dialogs.h"

#include <imgui_internal.h>

#include <algorithm>

#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/runs/evaluating.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

struct DialogLook {
  Dialog dialog;
  const char* title;
  float width, height;  // initial size in em; height 0: fits its content and cannot be resized
  void (*draw)(UiState& ui);
};

constexpr DialogLook kDialogLooks[] = {
    {Dialog::palette, "Command palette", 40, 26, draw_palette},
    {Dialog::keys, "Keys", 78, 50, draw_keys},
    {Dialog::browser, "Open", 48, 32, draw_browser},
    {Dialog::settings, "Settings", 46, 40, draw_settings},
    {Dialog::about, "About CoMERA Studio", 46, 44, draw_about},
    {Dialog::edit_runs, "Name, tags and notes", 34, 0, draw_edit_runs},
    {Dialog::purge_runs, "Purge runs", 34, 0, draw_purge_runs},
    {Dialog::run_to, "Train to ...", 32, 0, draw_run_to},
    {Dialog::no_device, "Device unavailable", 34, 0, draw_no_device},
    {Dialog::salvage, "Damaged database", 38, 0, draw_salvage},
    {Dialog::layouts, "Layouts", 34, 0, draw_layouts},
    {Dialog::evaluate, "Evaluate", 36, 0, draw_evaluate},
};

constexpr ImVec2 kSmallest(24, 14);  // in em, for dialogs that can be resized

}  // namespace

void open_dialog(UiState& ui, Dialog dialog) {
  ui.dialogs.open = dialog;
  ui.dialogs.appearing = true;
  ui.dialogs.query.clear();
  ui.dialogs.chosen = 0;
  ui.dialogs.settings_page = 0;
  ui.dialogs.key_change = {};
}

void change_keys(UiState& ui) {
  open_dialog(ui, Dialog::settings);
  ui.dialogs.settings_page = 1;
}

void close_dialog(UiState& ui) {
  const bool back = ui.dialogs.open == Dialog::browser && ui.dialogs.browse_for == BrowseFor::evaluation;
  ui.dialogs.open = Dialog::none;
  if (back) evaluate_on(ui, "");
}

void draw_dialogs(UiState& ui) {
  constexpr const char* kId = "###dialog";
  Dialogs& state = ui.dialogs;
  const auto look =
      std::find_if(std::begin(kDialogLooks), std::end(kDialogLooks), [&](const DialogLook& one) { return one.dialog == state.open; });
  if (look == std::end(kDialogLooks)) return;
  if (!ImGui::IsPopupOpen(kId)) ImGui::OpenPopup(kId);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 room(viewport->Size.x - em(2), viewport->Size.y - em(2));
  ImGui::SetNextWindowPos({viewport->Pos.x + viewport->Size.x / 2, viewport->Pos.y + viewport->Size.y * 0.46f}, ImGuiCond_Always,
                          {0.5f, 0.46f});
  const bool fitted = look->height == 0;
  ImVec2 in_em(look->width, look->height);
  if (const auto own = state.sizes.find(look->title); own != state.sizes.end() && !fitted) in_em = own->second;
  const ImVec2 size(std::min(em(in_em.x), room.x), std::min(em(in_em.y), room.y));
  ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings;
  if (fitted) {
    ImGui::SetNextWindowSizeConstraints({size.x, 0}, {size.x, room.y});
    flags |= ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoResize;
  } else {
    ImGui::SetNextWindowSizeConstraints({std::min(em(kSmallest.x), room.x), std::min(em(kSmallest.y), room.y)}, room);
    ImGui::SetNextWindowSize(size);  // every frame, so that it follows the scale and the window size
  }
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1), em(0.8f)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ImGui::GetStyle().FrameBorderSize);  // border if the theme gives fields a border
  const bool visible = ImGui::BeginPopupModal(kId, nullptr, flags);
  ImGui::PopStyleVar(2);
  if (!visible) return;
  // The user drags an edge or a corner. The dialog is centred, so both sides move.
  if (const ImVec2 now = ImGui::GetWindowSize(); !fitted && ImGui::IsMouseDown(0) && (now.x != size.x || now.y != size.y))
    state.sizes[look->title] = {now.x / ImGui::GetFontSize(), now.y / ImGui::GetFontSize()};
  if (look->dialog != Dialog::palette) {
    const float cross = ImGui::GetFrameHeight();
    ImGui::AlignTextToFramePadding();
    card_title(look->title);
    ImGui::SameLine();
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - cross));
    ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
    if (button("###close", {.icon = Icon::cross, .tooltip = "Close (Esc)", .size = {cross, cross}})) close_dialog(ui);
    ImGui::PopStyleColor();
  }
  const bool takes_keys = !state.key_change.action.empty();  // Esc first cancels the key capture
  look->draw(ui);
  state.appearing = state.open != look->dialog;  // this dialog opened another one
  if (!takes_keys && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) close_dialog(ui);
  if (state.open == Dialog::none) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace comera::studio
