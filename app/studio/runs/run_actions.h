// Actions on runs of the list. They do not block: the thread of StoreClient changes the database, and a toast reports
// errors.
#pragma once
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// The runs that an action of the list acts on: selected rows in shown order.
std::vector<const RunRow*> chosen_runs(const UiState& ui);

void rename_run(UiState& ui, const std::string& id, const std::string& name);
void set_tag(UiState& ui, const std::vector<std::string>& ids, const std::string& tag, bool on);
void set_notes(UiState& ui, const std::string& id, const std::string& notes);
// Stars those that have none, or takes the stars of all when all have one.
void toggle_star(UiState& ui, const std::vector<const RunRow*>& rows);
// The colour of a run, the same in the list as in plots and in the comparison: that of the compared run, else the one that
// was chosen, else the one it had when it was compared last, else what its id says.
int shown_slot(const Compare& compare, const RunRow& row);
// Another one, which is kept as a tag of the run.
void set_color(UiState& ui, const RunRow& row, int slot);
// Pins a run as the baseline of the list, and of the comparison where there is room for it; the pinned one is let go.
void toggle_baseline(UiState& ui, const std::string& id);
// Ticks those that are not compared, or unticks all when all are.
void toggle_compared(UiState& ui, const std::vector<const RunRow*>& rows);
// Hides runs from the list; a toast offers to take that back.
void archive_runs(UiState& ui, const std::vector<std::string>& ids);
void restore_runs(UiState& ui, const std::vector<std::string>& ids);
// Permanent; the dialog has asked before. Runs that a live or shown run needs are refused.
void purge_runs(UiState& ui, const std::vector<std::string>& ids);
// Confirmation text of a purge: the name of one run, or the count of several.
std::string purge_words(const std::vector<const RunRow*>& rows);
// Makes the database that is open, where there is none yet.
void create_store(UiState& ui);
// Into the folder of exports; `as`: one of RunChange::export_...
void export_runs(UiState& ui, const std::vector<std::string>& ids, RunChange::Kind as);
// "permanently deleting 2 runs".
std::string work_text(const RunChange& change);
// Tells what came of changes. Once a frame.
void tick_runs(UiState& ui);

}  // namespace comera::studio
