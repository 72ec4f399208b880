// View of the list of runs: order, columns, filter, selection. Rows are computed only when the list or one of these
// changes, so that thousands of runs cost a frame nothing.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/studio/runs/run_filter.h"
#include "app/studio/runs/run_lineage.h"
#include "app/studio/shown_run/store_client.h"

namespace comera::studio {

struct RunTable {
  std::string filter;
  std::string sort = "started";  // id of a field
  bool descending = true;
  bool archived = false;                            // those are shown, instead of the others
  std::set<std::string> toggled_columns;            // are shown but would not be, or the other way round
  std::vector<std::string> saved_filters;           // by the user
  bool lineage = false;                             // forks stand under the run they come from
  bool hide_short = false;                          // runs that ended after a few steps, unless the filter asks for them
  std::string baseline;                             // id of the run that the others are measured against; "" = none is pinned
  std::set<std::string> selected;                   // ids; the last one that was chosen is UiState::selected_run
  std::string anchor;                               // where a range with Shift begins
  int64_t extend_by = 0, fork_at = 0, back_to = 0;  // of the menu of a run
  std::string menu_column;                          // id of the column over which that was opened; "" = of none

  // What is shown: of `list`, which it keeps alive.
  std::vector<const RunRow*> rows;
  size_t short_runs = 0;                 // of the list, shown or hidden
  std::vector<Branch> branches;          // of each row, where `lineage` is on; else empty
  const RunRow* baseline_row = nullptr;  // null = none is pinned, or it is not in this store
  RunFilter parsed;
  std::shared_ptr<const RunList> list;
  std::string worked_out;  // filter, order and baseline that this is of

  bool column_shown(const std::string& id) const;
};

// Works out what is shown of a list. What is selected and gone is selected no more.
void update(RunTable& table, const std::shared_ptr<const RunList>& list);

// A click on a row: alone, with Ctrl (one more, or one less), or with Shift (all from the last one on).
void select_run(RunTable& table, const std::string& id, bool more, bool range);
void select_all(RunTable& table);
// The selected runs in the order they are shown.
std::vector<const RunRow*> selected_rows(const RunTable& table);

}  // namespace comera::studio
