// Quitting. While a run trains it asks first, then waits for the last checkpoint without blocking the window, and it
// does not go without a word when that checkpoint could not be written.
#pragma once

namespace comera::studio {

struct UiState;

// Once a frame, after everything else. Sets ui.quit when the window may go, and ui.closing.at_once when it shall not wait
// for the run.
void draw_close_dialog(UiState& ui);

}  // namespace comera::studio
