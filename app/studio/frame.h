// One frame of the whole window: bars, docked panels, dialogs, toasts. Knows nothing of GLFW, so tests draw it too.
#pragma once
#include <imgui.h>

#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

struct Layout {
  const char* name;  // also of --layout
  const char* title;
  ImGuiKeyChord keys;
};
std::span<const Layout> layouts();

// Between ImGui::NewFrame() and ImGui::Render().
void draw_frame(UiState& ui);

}  // namespace comera::studio
