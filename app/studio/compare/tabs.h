// The tabs of the comparison and their shared functions. A new tab is a file in this folder and a line in tabs.cpp.
#pragma once
#include <imgui.h>

#include <span>
#include <string>

#include "app/studio/compare/compare.h"
#include "app/studio/parts/export.h"

namespace comera::studio {

struct CompareTab {
  const char* id;  // also the value of --tab
  const char* title;
  void (*draw)(Compare& compare);
  std::vector<ListedChart> (*charts)(Compare& compare);  // the charts that can be exported, as currently shown
};
std::span<const CompareTab> compare_tabs();

// The settings table as currently shown, as Markdown.
std::string settings_markdown(const Compare& compare);
std::vector<ListedChart> curves_charts(Compare& compare);
std::vector<ListedChart> table_charts(Compare& compare);
std::vector<ListedChart> config_charts(Compare& compare);
std::vector<ListedChart> rank_difference_charts(Compare& compare);
std::vector<ListedChart> compared_memory_charts(Compare& compare);
std::vector<ListedChart> phases_charts(Compare& compare);
std::vector<ListedChart> pareto_charts(Compare& compare);
std::vector<ListedChart> parallel_charts(Compare& compare);
void draw_curves_tab(Compare& compare);
void draw_table_tab(Compare& compare);
void draw_config_tab(Compare& compare);
void draw_ranks_tab(Compare& compare);
void draw_memory_tab(Compare& compare);
void draw_phases_tab(Compare& compare);
void draw_pareto_tab(Compare& compare);
void draw_parallel_tab(Compare& compare);

// The sign of a run: a colour, a dash for slots 4 to 7, and a marker, so that colour is never the only difference. All runs have markers:
// most pairs of runs have the same dash and would otherwise differ in colour alone.
ImU32 color_of(const ComparedRun& run);                           // faint: another run is hovered or this one brushed out
float weight_of(const Compare& compare, const ComparedRun& run);  // line width factor: larger while the run is under the mouse
bool dashed(int slot);
Marker marker_of(int slot);                                                               // unique per slot
void draw_sample(ImDrawList* list, ImVec2 from, float width, int slot, float alpha = 1);  // a piece of the run's line
inline constexpr float kSampleWidth = 1.5f;                                               // width of a sample next to a name, in em
// An arrow, the difference and its verdict in small text, right-aligned in the available width.
void draw_delta(const Delta& delta);
// The sign (or its space) and the name, cut if too wide. While the mouse is on it, the run is highlighted.
void run_label(Compare& compare, const ComparedRun& run, float width, bool with_sign = true);
// Line below the title of a chart: number of runs and position of the cursor.
std::string note_of(const Compare& compare);
// Signs and names of the runs in one line, cut if there are too many.
void draw_names(Drawing& out, const Compare& compare, float y);
// Appends a name: "A, B".
void add_name(std::string& names, const std::string& name);
// A combo box of the compared runs; true if the selection changed.
bool run_combo(const char* id, const Compare& compare, std::string& chosen, float width);
// Begins a table with a row per quantity and a column per run, and draws its header with the names of the runs.
bool begin_run_table(const char* id, Compare& compare, const char* first, float first_width, float least_width);
// A row of this table: the value of each run and its difference from the baseline.
void draw_quantity(const Compare& compare, const Quantity& quantity);

}  // namespace comera::studio
