// Replay of the shown run. StoreClient reads the database on its thread; after that, moving the cursor only searches in memory, which is
// fast enough for dragging.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Step of the cursor, or the newest step if there is no replay.
int64_t cursor_step(const UiState& ui);
int64_t first_step(const RunView& view);
// Why a replay is not possible; null = possible.
const char* no_past(const UiState& ui);

// Moves the cursor. From the newest step on this is follow_run(). If the run is not read yet, the step is shown once it is.
void seek(UiState& ui, int64_t step);
void follow_run(UiState& ui);
void move_cursor(UiState& ui, int64_t recorded_steps);
// Moves to the next mark (direction 1) or the previous one (-1).
void seek_mark(UiState& ui, int direction, bool only_checkpoints = false);
void toggle_play(UiState& ui);
void play_from_start(UiState& ui);              // in about a minute
void change_speed(UiState& ui, double factor);  // 0 = original speed
void next_loop(UiState& ui);                    // off, all, then the selection if there is one

// Selects the steps between both, in any order. The loop and the summary use the selection.
void select_steps(UiState& ui, int64_t from, int64_t to);
void select_from(UiState& ui);  // begins at the cursor; keeps its end, or ends at the newest step
void select_to(UiState& ui);    // ends at the cursor
void drop_selection(UiState& ui);
RangeSummary summarise(const RunView& view, const PlayClock& clock, StepRange range);
// Summary of the selection, recomputed only after a change in it.
const RangeSummary& selection_summary(UiState& ui);

// Call when another run is shown.
void reset_timeline(UiState& ui);
// Call when the run was read from the store.
void take_past(UiState& ui, std::shared_ptr<Replay> replay);
// Appends new rows of the stored run. False: they do not continue the shown run, and nothing was changed.
bool take_more(UiState& ui, RunRows rows);
// The run was read again after a rollback: keeps cursor and selection if possible.
void take_again(UiState& ui, std::shared_ptr<RunView> view, std::shared_ptr<Replay> replay);
// Moves the cursor during playback. Called once a frame.
void advance_timeline(UiState& ui, double seconds);

}  // namespace comera::studio
