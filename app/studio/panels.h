// The table of panels. A new panel is a file in panels/ and a line in panels.cpp; menus, layouts and tests use the table.
#pragma once
#include <span>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Where a layout docks a panel. In small windows all places except `side` become tabs of one place; `below_end` is `below_right` if there
// is no room for three columns.
enum class Place { main, below_left, below_right, below_end, side };

struct Panel {
  const char* id;
  const char* title;
  void (*draw)(UiState& ui);
  Place place;
  std::vector<ListedChart> (*charts)(UiState& ui) = nullptr;  // the charts that can be exported, as currently shown
  bool of_a_run = true;                                       // charts() needs the shown run, whose name is part of the file names
};

std::span<const Panel> panels();
// Pages that are not panels but have charts: the list of runs, the form of a new run. Their `draw` is null.
std::span<const Panel> pages();
std::string window_name(const Panel& panel);  // name of its Dear ImGui window

// One function for each file of panels/. Start, new run, transport, timeline and status are parts of the frame; the list of runs is part of
// the start screen. The comparison is also a page of its own.
void draw_start(UiState& ui);
void draw_new_run(UiState& ui);
void draw_runs(UiState& ui);
void draw_compare(UiState& ui);
void draw_transport(UiState& ui);
void draw_status(UiState& ui);
void draw_timeline(UiState& ui);
float timeline_height(const UiState& ui);
void draw_timeline_line(UiState& ui);  // the part of the timeline that fits into one line
float timeline_line_height();
void draw_metrics(UiState& ui);
void draw_ranks(UiState& ui);
void draw_memory(UiState& ui);
void draw_tt(UiState& ui);
void draw_profile(UiState& ui);
void draw_controls(UiState& ui);
void draw_log(UiState& ui);
void draw_samples(UiState& ui);
bool compare_shown(const UiState& ui);  // as a page, or as the active panel of its tabs
std::vector<ListedChart> compare_charts(UiState& ui);
std::vector<ListedChart> metrics_charts(UiState& ui);
std::vector<ListedChart> ranks_charts(UiState& ui);
std::vector<ListedChart> memory_charts(UiState& ui);
std::vector<ListedChart> tt_charts(UiState& ui);
std::vector<ListedChart> profile_charts(UiState& ui);

}  // namespace comera::studio
