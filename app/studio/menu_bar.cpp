#include "app/studio/menu_bar.h"

#include <imgui_internal.h>

#include <string>
#include <vector>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/frame.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"

namespace comera::studio {
namespace {

// Alt, pressed alone, moves the keyboard to the menu bar; Alt again or Esc returns it. Dear ImGui itself offers only menus of the window
// that has the keyboard, and the menu bar is a separate window.
void take_keyboard(MenuKey& key) {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  ImGuiWindow* bar = ImGui::FindWindowByName("##MainMenuBar");
  const bool held = context.NavWindowingToggleLayer && context.NavWindowingInputSource == ImGuiInputSource_Keyboard;
  const bool pressed = key.held && !held && ImGui::IsKeyReleased(context.NavWindowingToggleKey);
  if (held && !key.held) key.from = context.NavWindow ? context.NavWindow->ID : 0;  // on release Dear ImGui has moved to a parent window
  key.held = held;
  if (!bar || context.OpenPopupStack.Size > 0) return;
  const bool here = context.NavWindow == bar;
  // After a menu was closed, the page behind the panels may have the keyboard; nothing there can be reached.
  const bool nowhere = !context.NavWindow || std::string(context.NavWindow->Name) == "##train";
  if (pressed && !here) {
    key.back = key.from;
    ImGui::FocusWindow(bar);
    ImGui::GetCurrentContext()->NavLayer = ImGuiNavLayer_Menu;
    ImGui::NavInitWindow(bar, true);
    ImGui::SetNavCursorVisible(true);
  } else if (key.back != 0 && (nowhere || (here && context.NavLayer == ImGuiNavLayer_Main))) {
    if (ImGuiWindow* before = ImGui::FindWindowByID(key.back)) ImGui::FocusWindow(before);
    key.back = 0;
  } else if (!here && !nowhere &&
             !(context.NavWindow->Flags & ImGuiWindowFlags_Popup)) {  // a menu that was just closed does not count as a new focus
    key.back = 0;
  }
}

}  // namespace

void draw_menu_bar(UiState& ui) {
  take_keyboard(ui.menu_key);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.6f), em(0.45f)));
  if (ImGui::BeginMainMenuBar()) {
    if (ImGui::GetWindowWidth() > em(40)) {
      push_title();
      ImGui::PushStyleColor(ImGuiCol_Text, theme().accent);
      ImGui::TextUnformatted(" CoMERA");
      ImGui::PopStyleColor();
      ImGui::PopFont();
      ImGui::Dummy({em(0.4f), 0});
    }
    for (int i = 0; i < kMenusOfBar; ++i) {
      const auto menu = static_cast<Menu>(i);
      if (!ImGui::BeginMenu(title_of(menu))) continue;
      draw_menu(ui, menu);
      ImGui::EndMenu();
    }
    // Layouts at the right end; without room there, they are only in the menu Window.
    std::vector<const char*> titles;
    int chosen = -1;
    const ImGuiStyle& style = ImGui::GetStyle();
    float layout_width = 0;
    const bool dark = ui.settings.theme != ThemeKind::light;
    const ButtonLook look{.icon = dark ? Icon::sun : Icon::moon, .tooltip = dark ? "Light theme" : "Dark theme"};
    const float theme_width = button_width("", look) + em(0.6f);
    for (const Layout& layout : layouts()) {
      if (std::string(chosen_layout(ui)) == layout.name) chosen = static_cast<int>(titles.size());
      titles.push_back(layout.title);
      layout_width += ImGui::CalcTextSize(layout.title).x + 2 * style.FramePadding.x + style.ItemSpacing.x;
    }
    const float left = ImGui::GetCursorPosX(), room = ImGui::GetWindowWidth() - left - theme_width;
    if (layout_width <= room) {
      ImGui::SetCursorPosX(left + room - layout_width);
      if (segmented("layouts", titles.data(), static_cast<int>(titles.size()), chosen))
        choose_layout(ui, layouts()[static_cast<size_t>(chosen)].name);
    } else if (room >= 0) {
      ImGui::SetCursorPosX(left + room);
    }
    if (room >= 0) {
      ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
      if (button("###theme", look)) set_theme(ui, dark ? ThemeKind::light : ThemeKind::dark);
      ImGui::PopStyleColor();
    }
    ImGui::EndMainMenuBar();
  }
  ImGui::PopStyleVar();
}

}  // namespace comera::studio
