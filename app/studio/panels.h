// The table of panels. A new panel is a file in panels/ and a line in panels.cpp; menus, layouts and tests follow.
#pragma once
#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Where a layout docks a panel. In small windows all but `side` are tabs of one place; `below_end` is `below_right` without
// room for three columns.
enum class Place { main, below_left, below_right, below_end, side };

struct Panel {
  const char* id;
  const char* title;
  void (*draw)(UiState& ui);
  Place place;
  std::vector<ListedChart> (*charts)(UiState& ui) = nullptr;  // what can be exported of it, as it is shown
  bool of_a_run = true;                                       // charts() needs the shown run, and files are named after it
};

std::span<const Panel> panels();
// Pages that are no panels and have charts: the list of runs, the form of a new one. Their `draw` is null.
std::span<const Panel> pages();
std::string window_name(const Panel& panel);  // of its window

// One of each file of panels/. Start, new run, transport, timeline and status are parts of the frame, the list of runs
// of the start screen. The comparison is a page of its own as well.
void draw_start(UiState& ui);
void draw_new_run(UiState& ui);
void draw_runs(UiState& ui);
void draw_compare(UiState& ui);
void draw_transport(UiState& ui);
void draw_status(UiState& ui);
void draw_timeline(UiState& ui);
float timeline_height(const UiState& ui);
void draw_timeline_line(UiState& ui);  // as much of it as a line has room for
float timeline_line_height();
void draw_metrics(UiState& ui);
void draw_ranks(UiState& ui);
void draw_memory(UiState& ui);
void draw_tt(UiState& ui);
void draw_profile(UiState& ui);
void draw_controls(UiState& ui);
void draw_log(UiState& ui);
bool compare_shown(const UiState& ui);  // as its page, or as a panel that is not behind another one
std::vector<ListedChart> compare_charts(UiState& ui);
std::vector<ListedChart> metrics_charts(UiState& ui);
std::vector<ListedChart> ranks_charts(UiState& ui);
std::vector<ListedChart> memory_charts(UiState& ui);
std::vector<ListedChart> tt_charts(UiState& ui);
std::vector<ListedChart> profile_charts(UiState& ui);

}  // namespace comera::studio
