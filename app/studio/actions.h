// What buttons, menus, shortcuts and the command line do; each works the same from all of them (action_table.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Starts a preset or a config file; what is wrong with it becomes a toast. False when nothing was started.
bool start_preset(UiState& ui, const std::string& name);
// Starts a run with exactly this config.
bool start_config(UiState& ui, const RunConfig& config, std::vector<std::string> sets = {});
// Why nothing can be written into the database that is open, so that no run can be trained into it and none be changed;
// "" = it can, as far as is known.
std::string no_writing(const UiState& ui);
// Why the newest session cannot be started again with half its batch; null when it can. What is resumed keeps its batch.
const char* no_half_batch(const UiState& ui);
void start_with_half_batch(UiState& ui);
// The newest session once more, on the processor.
void start_on_cpu(UiState& ui);
// What it was to compute on: auto, cpu or cuda:N.
const std::string& device_of_start(const UiState& ui);
// A stored run once more, as a new one with the config that it began with but for this; a fork begins where it was forked.
void retry_run(UiState& ui, const std::string& id, Retry how, const std::string& store = {});
// Asks whether a run whose device is not here shall run on the processor.
void ask_for_cpu(UiState& ui, const std::string& device, const std::string& why, std::function<void(UiState&)> on_cpu);
// Lists the runs of another database, and keeps those in it that are started from now on.
void open_store(UiState& ui, const std::string& path);
const std::vector<std::string>& presets();  // that ship with the program
void open_run(UiState& ui, const std::string& id, int64_t step = -1);
// The run that was shown when the window was closed; the page stays. One that cannot be read is left out without a word.
void reopen_run(UiState& ui, const std::string& id);
// One that was begun elsewhere; the page stays.
void show_newest(UiState& ui, const std::string& id);
void resume_run(UiState& ui, const std::string& id, const ResumeWith& with = {});
// A new run from a stored one.
void fork_run(UiState& ui, const std::string& id, const ResumeWith& with);
void resume_shown(UiState& ui);
// How many steps more a finished run is offered: about half of those it has; 0 = the shown run is not finished, or not
// stored.
int64_t offered_steps(const UiState& ui);
void extend_shown(UiState& ui);
// Shows a stored run from its first step on, with the panels arranged to replay it.
void replay_run(UiState& ui, const std::string& id);
// What the first button of the transport bar and its key do: pause or go on, resume the stored run that is shown, extend
// it when it is finished, or start the chosen preset.
void start_or_pause(UiState& ui);
// Back to the run that trains while another one is shown.
void show_live(UiState& ui);
// Of the shown run, after it diverged: goes on from its last checkpoint, as it was or in a new run at half the rates.
void roll_back_shown(UiState& ui);
void fork_shown_slower(UiState& ui);
// A new run from the shown one, as it was at the step of the timeline's cursor, or at the checkpoint before it. One that
// trains is stopped with a checkpoint, as by everything else that is started here.
bool fork_shown(UiState& ui);
bool fork_shown_checkpoint(UiState& ui);
void fork_shown_with(UiState& ui);  // the same in the form, where its settings can be changed first
// Goes on with the shown run itself from the nearest checkpoint before the cursor; what it did after that is kept as a run of
// its own. Why it cannot; null when it can.
void go_back_shown(UiState& ui);
const char* no_going_back(const UiState& ui);
// Why the shown run cannot be forked at a step; null when it can.
const char* no_fork(const UiState& ui, int64_t step);
// Puts the run that is shown beside the one it was forked from, which is the baseline; none: does nothing.
void compare_with_parent(UiState& ui);
void show_layout(UiState& ui, const std::string& name);
// The panels where the layout has them, and plots and views as shipped; a toast has the way back for these.
void reset_layout(UiState& ui);
// The settings of the window as shipped (preferences.h), at once.
void use_shipped_settings(UiState& ui);
// Opens a panel of the train layout and brings it to the front of its tabs.
void show_panel(UiState& ui, const std::string& id);
void toggle_pause(UiState& ui);
void stop_run(UiState& ui, bool checkpoint);
// Trains until a step is done, then pauses; one that is done already is told to be.
void run_to_step(UiState& ui, int64_t step);
// The last edit of a live setting; both are edits too, at the next step boundary.
void undo_edit(UiState& ui);
void redo_edit(UiState& ui);
// Brings the run that trains to the checkpoint interval of the settings, if they have one.
void autosave(UiState& ui);
// A picture of the window as it is, into the folder of exports; a toast tells where.
void take_screenshot(UiState& ui);
void set_theme(UiState& ui, ThemeKind kind);
// The theme is that of the desktop from now on; asked is again whenever the window gets the keyboard.
void follow_desktop_theme(UiState& ui);
void set_user_scale(UiState& ui, float scale);
void toast(UiState& ui, Level level, const std::string& text);
void add_toast(UiState& ui, Toast toast);
// Takes what sessions and store have to say. Once a frame; never waits.
void tick(UiState& ui);

}  // namespace comera::studio
