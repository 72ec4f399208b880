// The bar at the top: menus, layouts, theme; and keyboard access to it.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_menu_bar(UiState& ui);

}  // namespace comera::studio
