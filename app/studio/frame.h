// One frame of the whole window: bars, docked panels, dialogs, toasts. Independent of GLFW, so tests can draw it too.
#pragma once
#include <imgui.h>

#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

// A choice of the user: a page, or an arrangement of the panels.
struct Layout {
  const char* name;  // also the value of --layout
  const char* title;
  ImGuiKeyChord keys;
  bool panels = false;  // an arrangement of the panels; the page is then `train`
};
std::span<const Layout> layouts();
const char* chosen_layout(const UiState& ui);  // name of the current layout
// Choosing an arrangement docks the panels at their defaults; choosing the current one changes nothing.
void choose_layout(UiState& ui, const std::string& name);

// Whether the sign over the panels shows that they are at an earlier step; the tabs may leave no room for it.
bool shows_replay_sign(const UiState& ui);

// Call between ImGui::NewFrame() and ImGui::Render().
void draw_frame(UiState& ui);

}  // namespace comera::studio
