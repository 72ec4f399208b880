#include "app/studio/reopening.h"

#include <algorithm>
#include <utility>

#include "app/studio/actions.h"
#include "app/studio/newcomer.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

std::string shown_run(const UiState& ui) {
  if (!ui.has_run()) return ui.reopening.shown;  // not reopened yet
  return ui.shown().store.empty() || is_recorded(ui.shown().store) ? "" : ui.shown().snapshot->run;
}

std::vector<std::string> compared_runs(const UiState& ui) {
  std::vector<std::string> ids;
  for (const auto& run : ui.compare.runs) ids.push_back(run->id());
  return ids;
}

void forget_shown(UiState& ui) {
  ui.reopening.shown.clear();
  if (ui.layout == "train" && !ui.has_run()) show_layout(ui, "start");  // the page would be empty
}

void tick_reopening(UiState& ui) {
  Reopening& open = ui.reopening;
  if (!ui.store || !ui.runs->loaded || (open.shown.empty() && open.compared.empty())) return;
  if (!ui.runs->problem.empty()) {  // the list of runs shows the problem
    if (!open.shown.empty()) forget_shown(ui);
    return;
  }
  const auto is_there = [&](const std::string& id) {
    for (const std::vector<RunRow>* rows : {&ui.runs->rows, &ui.runs->archived})
      if (std::any_of(rows->begin(), rows->end(), [&](const RunRow& row) { return row.id == id; })) return true;
    return false;
  };
  for (const std::string& id : std::exchange(open.compared, {}))
    if (!is_there(id)) unpick_run(ui.compare, id);
  if (open.shown.empty()) return;
  const bool opens = is_there(open.shown) && !ui.has_run() && ui.load_request == 0;
  if (opens) reopen_run(ui, open.shown);
  if (opens || ui.has_run() || ui.load_request != 0)
    open.shown.clear();
  else
    forget_shown(ui);
}

}  // namespace comera::studio
