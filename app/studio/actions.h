// Commands behind buttons, menus, shortcuts and arguments (action_table.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Starts a preset or a config file. On an error: a toast and false.
bool start_preset(UiState& ui, const std::string& name);
// Starts a run with exactly this config. `processes`: of this machine, that train it together.
bool start_config(UiState& ui, const RunConfig& config, FolderStart folder = {}, std::vector<std::string> sets = {}, int processes = 1);
// Starts exactly this. `behind`: the page and the stored run that is shown stay.
bool start_run(UiState& ui, SessionStart session, bool behind);
// Why the open database is read-only, so that it takes no new runs or changes; "" = writable, as far as known.
std::string no_writing(const UiState& ui);
// Why the newest session cannot be retried with half its batch size; null when it can. A resumed run keeps its batch size.
const char* no_half_batch(const UiState& ui);
void start_with_half_batch(UiState& ui);
// Retries the newest session on the CPU.
void start_on_cpu(UiState& ui);
// The requested device: auto, cpu or cuda:N.
const std::string& device_of_start(const UiState& ui);
// Retries a stored run as a new one with its initial config and this change; a fork starts at its fork step.
void retry_run(UiState& ui, const std::string& id, Retry how, const std::string& store = {});
// Offers to train on the CPU when the device of a run is not available.
void ask_for_cpu(UiState& ui, const std::string& device, const std::string& why, std::function<void(UiState&)> on_cpu);
// Switches to another database for the list and for new runs.
void open_store(UiState& ui, const std::string& path);
const std::vector<std::string>& presets();  // presets that ship with the program
void open_run(UiState& ui, const std::string& id, int64_t step = -1);
// Shows the run of the last session; the page stays. An unreadable run is skipped silently.
void reopen_run(UiState& ui, const std::string& id);
// Shows a run that another program started; the page stays.
void show_newest(UiState& ui, const std::string& id);
void resume_run(UiState& ui, const std::string& id, const ResumeWith& with = {});
// Forks a new run from a stored one.
void fork_run(UiState& ui, const std::string& id, const ResumeWith& with);
void resume_shown(UiState& ui);
// Steps offered to extend a finished run: about half of its steps; 0 = the shown run is not finished or not stored.
int64_t offered_steps(const UiState& ui);
int64_t half_of_steps(int64_t steps);  // at least 1, rounded to two significant digits
void extend_shown(UiState& ui);
// Shows a stored run from its first step on, with the panels arranged for replay.
void replay_run(UiState& ui, const std::string& id);
// Action of the first transport button and its key: pause or continue, resume or extend the shown stored run, or start the
// chosen preset.
void start_or_pause(UiState& ui);
// Returns to the live run from another shown run.
void show_live(UiState& ui);
// After the shown run diverged: rolls back to its last checkpoint, or forks from it with half the learning rates.
void roll_back_shown(UiState& ui);
void fork_shown_slower(UiState& ui);
// Forks the shown run at the step of the cursor, or at the last checkpoint before it. A live run stops with a checkpoint
// first.
bool fork_shown(UiState& ui);
bool fork_shown_checkpoint(UiState& ui);
void fork_shown_with(UiState& ui);  // same, but opens the form first so that settings can be changed
// Rolls the shown run back to the last checkpoint before the cursor; later steps become a discarded branch. no_going_back(): why this is
// not possible; null = possible.
void go_back_shown(UiState& ui);
const char* no_going_back(const UiState& ui);
// Why the shown run cannot be forked at a step; null = it can.
const char* no_fork(const UiState& ui, int64_t step);
// Compares these stored runs instead of others; the first is the baseline.
void compare_runs(UiState& ui, const std::vector<std::string>& runs);
// Compares the shown run with its parent as the baseline; does nothing without a parent.
void compare_with_parent(UiState& ui);
void show_layout(UiState& ui, const std::string& name);
// Resets panels to the layout, and plots and views to their defaults; a toast offers undo.
void reset_layout(UiState& ui);
// Resets the settings of the window (preferences.h) at once.
void use_shipped_settings(UiState& ui);
// Opens a panel of the train layout and brings it to the front of its tabs.
void show_panel(UiState& ui, const std::string& id);
void toggle_pause(UiState& ui);
void stop_run(UiState& ui, bool checkpoint);
// Trains until a step is done, then pauses; a step that is already done only shows a message.
void run_to_step(UiState& ui, int64_t step);
// Undo and redo of live edits; both are edits themselves, in force at the next step boundary.
void undo_edit(UiState& ui);
void redo_edit(UiState& ui);
// Applies the checkpoint interval of the settings, if any, to the live run.
void autosave(UiState& ui);
// Saves a screenshot into the folder of exports; a toast shows the path.
void take_screenshot(UiState& ui);
void set_theme(UiState& ui, ThemeKind kind);
// Follows the desktop theme from now on; the theme is read again whenever the window gets the focus.
void follow_desktop_theme(UiState& ui);
void set_user_scale(UiState& ui, float scale);
void toast(UiState& ui, Level level, const std::string& text);
void add_toast(UiState& ui, Toast toast);
// Takes results of sessions and the database. Called once a frame; never blocks.
void tick(UiState& ui);

}  // namespace comera::studio
