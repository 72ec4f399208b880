// The bar at the top: menus, layouts, theme; and the way to it by the keyboard.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_menu_bar(UiState& ui);

}  // namespace comera::studio
