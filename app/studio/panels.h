// The table of panels. A new panel is a file in panels/ and a line in panels.cpp; menus, layouts and tests follow.
#pragma once
#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Where a layout docks a panel; on small windows all but `side` are tabs of one place.
enum class Place { main, below_left, below_right, side };

struct Panel {
  const char* id;
  const char* title;
  void (*draw)(UiState& ui);
  Place place;
  std::vector<Chart> (*charts)(UiState& ui) = nullptr;  // what can be exported of it, as it is shown; only called with a run
};

std::span<const Panel> panels();

// One of each file of panels/. Start, new run, compare, transport, timeline and status are parts of the frame, the list
// of runs of the start screen.
void draw_start(UiState& ui);
void draw_new_run(UiState& ui);
void draw_runs(UiState& ui);
void draw_compare(UiState& ui);
void draw_transport(UiState& ui);
void draw_status(UiState& ui);
void draw_timeline(UiState& ui);
float timeline_height(const UiState& ui);
void draw_metrics(UiState& ui);
void draw_ranks(UiState& ui);
void draw_memory(UiState& ui);
void draw_tt(UiState& ui);
void draw_profile(UiState& ui);
void draw_controls(UiState& ui);
void draw_log(UiState& ui);
std::vector<Chart> metrics_charts(UiState& ui);
std::vector<Chart> ranks_charts(UiState& ui);
std::vector<Chart> memory_charts(UiState& ui);
std::vector<Chart> tt_charts(UiState& ui);
std::vector<Chart> profile_charts(UiState& ui);

}  // namespace comera::studio
