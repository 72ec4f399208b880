// Quitting. While a run trains it asks first, then waits for the last checkpoint without blocking the window; exports, changes
// of the store and other work that writes are waited for too, or given up. It does not go without a word when something could
// not be written.
#pragma once
#include <string>
#include <vector>

namespace comera::studio {

struct UiState;

// Once a frame, after everything else. Sets ui.quit when the window may go, and ui.closing.at_once when it shall not wait
// for the run and the work.
void draw_close_dialog(UiState& ui);

// Work that quitting waits for, a line each: "Writing 3 files to FOLDER".
std::vector<std::string> unfinished_work(const UiState& ui);
// Drops what has not begun and asks the rest to end soon, without unfinished files. It can be called again and again.
void give_up_work(UiState& ui);

}  // namespace comera::studio
