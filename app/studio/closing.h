// Quitting. If a run trains, a dialog asks first; then the window waits for the last checkpoint without blocking. It also waits for
// exports, changes of the store and other work that writes, or drops that work. If something could not be written, a dialog reports it
// before the window closes.
#pragma once
#include <string>
#include <vector>

namespace comera::studio {

struct UiState;

// Called once a frame, after everything else. Sets ui.quit when the window may close, and ui.closing.at_once when it must not wait for the
// run and other work.
void draw_close_dialog(UiState& ui);

// Work that quitting waits for, one line each: "Writing 3 files to FOLDER".
std::vector<std::string> unfinished_work(const UiState& ui);
// Drops work that has not begun and asks running work to end soon, leaving no unfinished files. May be called repeatedly.
void give_up_work(UiState& ui);

}  // namespace comera::studio
