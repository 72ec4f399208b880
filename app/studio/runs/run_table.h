// View of the list of runs: order, columns, filter, selection. Rows are recomputed only when the list or one of these changes, so that
// thousands of runs cost no time per frame.
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
  std::string sort = "started";  // id of the field
  bool descending = true;
  bool archived = false;                            // show archived runs instead
  std::set<std::string> toggled_columns;            // columns whose visibility differs from the default
  std::vector<std::string> saved_filters;           // saved by the user
  bool lineage = false;                             // show forks below their parents
  bool hide_short = false;                          // hide runs that ended after a few steps, unless the filter mentions them
  std::string baseline;                             // id of the pinned baseline; "" = none
  std::set<std::string> selected;                   // ids; the last selected one is UiState::selected_run
  std::string anchor;                               // id of the run where a Shift range begins
  int64_t extend_by = 0, fork_at = 0, back_to = 0;  // inputs of the context menu
  std::string menu_column;                          // id of the column where the menu was opened; "" = none

  // Result: pointers into `list`, which is kept alive.
  std::vector<const RunRow*> rows;
  size_t short_runs = 0;                 // in the list, shown or hidden
  std::vector<Branch> branches;          // one per row if `lineage` is set; else empty
  const RunRow* baseline_row = nullptr;  // null = none, or not in this store
  RunFilter parsed;
  std::shared_ptr<const RunList> list;
  std::string worked_out;  // key of filter, order and baseline of the result

  bool column_shown(const std::string& id) const;
};

// Recomputes the rows for a list. Runs that no longer exist are deselected.
void update(RunTable& table, const std::shared_ptr<const RunList>& list);

// Selects a run: alone; `more` (Ctrl) toggles it; `range` (Shift) selects all rows from the anchor.
void select_run(RunTable& table, const std::string& id, bool more, bool range);
void select_all(RunTable& table);
// The selected runs in the order shown.
std::vector<const RunRow*> selected_rows(const RunTable& table);

}  // namespace comera::studio
