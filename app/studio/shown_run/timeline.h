// Replay of the shown run. The StoreClient reads the database on its thread; after that a move costs only searches in
// memory, fast enough for dragging.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Step of the cursor; the newest step when it follows the run.
int64_t cursor_step(const UiState& ui);
int64_t first_step(const RunView& view);
// Why replay is not possible; null when it is.
const char* no_past(const UiState& ui);

// To a step. From the newest one on this is follow_run(). What is not read yet is shown as soon as it is.
void seek(UiState& ui, int64_t step);
void follow_run(UiState& ui);
void move_cursor(UiState& ui, int64_t recorded_steps);
// To the next mark (direction 1) or the one before (-1).
void seek_mark(UiState& ui, int direction, bool only_checkpoints = false);
void toggle_play(UiState& ui);
void play_from_start(UiState& ui);              // in about a minute
void change_speed(UiState& ui, double factor);  // 0 = as it was recorded
void next_loop(UiState& ui);                    // off, all, the selection if there is one

// Selects the steps between two, in any order; the loop and the summary use them.
void select_steps(UiState& ui, int64_t from, int64_t to);
void select_from(UiState& ui);  // it begins at the cursor, and ends where it did, or at the newest step
void select_to(UiState& ui);    // it ends at the cursor
void drop_selection(UiState& ui);
RangeSummary summarise(const RunView& view, const PlayClock& clock, StepRange range);
// Of the selection; computed anew only when something in it changed.
const RangeSummary& selection_summary(UiState& ui);

// Another run is shown.
void reset_timeline(UiState& ui);
// The store was read.
void take_past(UiState& ui, std::shared_ptr<Replay> replay);
// There is more of the stored run. False, and nothing changes, where it is no continuation of what is shown.
bool take_more(UiState& ui, RunRows rows);
// The run was read again after a rollback: cursor and selection stay where possible.
void take_again(UiState& ui, std::shared_ptr<RunView> view, std::shared_ptr<Replay> replay);
// Plays. Once a frame.
void advance_timeline(UiState& ui, double seconds);

}  // namespace comera::studio
