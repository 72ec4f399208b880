// Actions on runs of the list. They do not block: StoreClient's thread changes the database, and a toast reports errors.
#pragma once
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// The runs that an action of the list acts on: the selected rows, in the order shown.
std::vector<const RunRow*> chosen_runs(const UiState& ui);

void rename_run(UiState& ui, const std::string& id, const std::string& name);
void set_tag(UiState& ui, const std::vector<std::string>& ids, const std::string& tag, bool on);
void set_notes(UiState& ui, const std::string& id, const std::string& notes);
// Adds a star to all runs; removes it if all have one.
void toggle_star(UiState& ui, const std::vector<const RunRow*>& rows);
// Colour slot of a run, the same in list, plots and comparison: that of the compared run, else the one that the user chose, else the one of
// its last comparison, else the default of its id.
int shown_slot(const Compare& compare, const RunRow& row);
// Changes the colour; it is stored as a tag of the run.
void set_color(UiState& ui, const RunRow& row, int slot);
// Pins a run as the baseline of the list, and of the comparison if it has room. If it is already pinned, unpins it.
void toggle_baseline(UiState& ui, const std::string& id);
// Adds all runs to the comparison; if all are compared, removes them.
void toggle_compared(UiState& ui, const std::vector<const RunRow*>& rows);
// Hides runs from the list; a toast offers undo.
void archive_runs(UiState& ui, const std::vector<std::string>& ids);
void restore_runs(UiState& ui, const std::vector<std::string>& ids);
// Permanent: call only after the user confirmed. Refuses runs that a live or the shown run needs.
void purge_runs(UiState& ui, const std::vector<std::string>& ids);
// Text that confirms a purge: the name of a single run, or the number of runs.
std::string purge_words(const std::vector<const RunRow*>& rows);
// Creates the open database if it does not exist yet.
void create_store(UiState& ui);
// Exports into the folder of exports. `as`: one of RunChange::export_...
void export_runs(UiState& ui, const std::vector<std::string>& ids, RunChange::Kind as);
// Text about a change in progress: "permanently deleting 2 runs".
std::string work_text(const RunChange& change);
// Reports the results of changes. Called once a frame.
void tick_runs(UiState& ui);

}  // namespace comera::studio
