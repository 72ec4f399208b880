#include "app/studio/interrupted.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr const char* kToast = "interrupted";

// Runs of this window do not count: their heartbeat may be late.
bool is_own(const UiState& ui, const std::string& id) {
  const auto is = [&](const std::unique_ptr<LiveRun>& run) { return run && run->run() == id; };
  return is(ui.live) || std::any_of(ui.ending.begin(), ui.ending.end(), is);
}

std::string text_of(const std::vector<const RunRow*>& rows) {
  if (rows.size() > 1) return std::to_string(rows.size()) + " runs were interrupted: the program ended without stopping them.";
  const RunRow& row = *rows.front();
  return "1 run was interrupted: " + (row.name.empty() ? row.id : row.name) + ", at step " +
         thousands(static_cast<double>(row.summary.step)) + " of " + thousands(static_cast<double>(row.summary.total_steps)) + ".";
}

}  // namespace

void tick_interrupted(UiState& ui) {
  if (ui.interrupted_of == ui.runs) return;
  ui.interrupted_of = ui.runs;
  std::vector<const RunRow*> rows;
  double newest = ui.settings.interrupted_told;
  for (const RunRow& row : ui.runs->rows)
    if (row.status == "interrupted" && row.heartbeat > ui.settings.interrupted_told && !is_own(ui, row.id)) {
      rows.push_back(&row);
      newest = std::max(newest, row.heartbeat);
    }
  const std::string text = rows.empty() ? "" : text_of(rows);
  const auto shown = std::find_if(ui.toasts.begin(), ui.toasts.end(), [](const Toast& one) { return one.id == kToast; });
  if (shown != ui.toasts.end()) {
    if (shown->text == text) return;
    ui.toasts.erase(shown);
  }
  if (rows.empty()) return;
  Toast toast{.level = Level::warning, .text = text, .until = kUntilDismissed, .id = kToast};
  const auto offer = [&](const char* label, std::function<void(UiState&)> act) {
    toast.offers.push_back({label, [newest, act = std::move(act)](UiState& state) {
                              state.settings.interrupted_told = newest;
                              if (act) act(state);
                            }});
  };
  if (rows.size() == 1) {
    offer("Resume", [id = rows.front()->id](UiState& state) { resume_run(state, id); });
    offer("Show", [id = rows.front()->id](UiState& state) { open_run(state, id); });
  } else {
    offer("Show", [](UiState& state) {
      state.run_table.filter = "interrupted";
      show_layout(state, "start");
    });
  }
  offer("Dismiss", {});
  add_toast(ui, std::move(toast));
}

}  // namespace comera::studio
