// Moving through the past of the shown run. The store is read on the StoreClient's thread; once that is done a move
// costs some searches in memory, so that a mouse can drag it.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Where the cursor is: the newest step when it follows the run.
int64_t cursor_step(const UiState& ui);
int64_t first_step(const RunView& view);
// Why the past cannot be shown; null when it can.
const char* no_past(const UiState& ui);

// To a step. From the newest one on this is follow_run(). What is not read yet is shown as soon as it is.
void seek(UiState& ui, int64_t step);
void follow_run(UiState& ui);
void move_cursor(UiState& ui, int64_t recorded_steps);
// To the next mark (direction 1) or the one before (-1).
void seek_mark(UiState& ui, int direction, bool only_checkpoints = false);
void toggle_play(UiState& ui);
void change_speed(UiState& ui, double factor);  // 0 = as it was recorded

// Another run is shown.
void reset_timeline(UiState& ui);
// The store was read.
void take_past(UiState& ui, std::shared_ptr<Replay> replay);
// Plays. Once a frame.
void advance_timeline(UiState& ui, double seconds);

}  // namespace comera::studio
