// The tabs of the comparison and what they share. A new tab is a file beside this one and a line in tabs.cpp.
#pragma once
#include <imgui.h>

#include <span>
#include <string>

#include "app/studio/compare/compare.h"
#include "app/studio/parts/export.h"

namespace comera::studio {

struct CompareTab {
  const char* id;  // also of --tab
  const char* title;
  void (*draw)(Compare& compare);
  std::vector<ListedChart> (*charts)(Compare& compare);  // what can be exported of it, as it is shown
};
std::span<const CompareTab> compare_tabs();

// The table of settings as it is shown, as Markdown.
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

// A run's sign: its colour, a dash for the second four, and a marker, so that the colour is never the only sign. Markers are
// there from the first run on: most pairs of runs are dashed alike, so that without them two lines differ in colour alone.
ImU32 color_of(const ComparedRun& run);                           // faint when it is brushed out, or another one is under the mouse
float weight_of(const Compare& compare, const ComparedRun& run);  // of its lines: more when it is under the mouse
bool dashed(int slot);
Marker marker_of(int slot);                                                               // of no other slot
void draw_sample(ImDrawList* list, ImVec2 from, float width, int slot, float alpha = 1);  // a piece of its line
inline constexpr float kSampleWidth = 1.5f;                                               // of one beside a name, in em
// An arrow, the difference and its verdict, in small letters at the right end of what there is room for.
void draw_delta(const Delta& delta);
// The sign, or the room for it, and the name, cut where it does not fit. The run stands out while the mouse is on them.
void run_label(Compare& compare, const ComparedRun& run, float width, bool with_sign = true);
// How many runs, and at which place of the axis they are, for the line under the title of a chart.
std::string note_of(const Compare& compare);
// Signs and names of the runs in a line, cut where there are many.
void draw_names(Drawing& out, const Compare& compare, float y);
// "A, B" of some runs.
void add_name(std::string& names, const std::string& name);
// A combo of the compared runs; true when another one was chosen.
bool run_combo(const char* id, const Compare& compare, std::string& chosen, float width);
// Columns of the table of one row a quantity and one column a run: begins it with the names as its head.
bool begin_run_table(const char* id, Compare& compare, const char* first, float first_width, float least_width);
// A row of it: the value of each run, and how it stands to the baseline's.
void draw_quantity(const Compare& compare, const Quantity& quantity);

}  // namespace comera::studio
