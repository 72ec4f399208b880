// Context menu of the selected runs of the list.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Draws the items inside a popup.
void draw_run_menu(UiState& ui);

}  // namespace comera::studio
