// One frame of the whole window: bars, docked panels, dialogs, toasts. Knows nothing of GLFW, so tests draw it too.
#pragma once
#include <imgui.h>

#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

// What the user chooses to see: a page, or the panels in an arrangement.
struct Layout {
  const char* name;  // also of --layout
  const char* title;
  ImGuiKeyChord keys;
  bool panels = false;  // an arrangement of them; the page is `train` then
};
std::span<const Layout> layouts();
const char* chosen_layout(const UiState& ui);  // its name
// Choosing an arrangement docks its default; the current one stays unchanged.
void choose_layout(UiState& ui, const std::string& name);

// Between ImGui::NewFrame() and ImGui::Render().
void draw_frame(UiState& ui);

}  // namespace comera::studio
