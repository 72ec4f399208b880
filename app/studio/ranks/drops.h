// All rank drops, newest first.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Up to the shown step. A click moves the cursor to the step of a drop.
void draw_rank_drops(UiState& ui, ImVec2 size);

}  // namespace comera::studio
