// The tabs of the comparison and what they share. A new tab is a file beside this one and a line in tabs.cpp.
#pragma once
#include <imgui.h>

#include <span>
#include <string>

#include "app/studio/compare/compare.h"

namespace comera::studio {

struct CompareTab {
  const char* id;  // also of --tab
  const char* title;
  void (*draw)(Compare& compare);
};
std::span<const CompareTab> compare_tabs();

void draw_curves_tab(Compare& compare);
void draw_table_tab(Compare& compare);
void draw_config_tab(Compare& compare);
void draw_ranks_tab(Compare& compare);
void draw_memory_tab(Compare& compare);
void draw_pareto_tab(Compare& compare);
void draw_parallel_tab(Compare& compare);

// A run's sign: its colour, and a dash for the second four, so that the colour is never the only sign.
ImU32 color_of(const ComparedRun& run);  // faint when it lies outside of what is brushed
bool dashed(int slot);
void draw_sample(ImDrawList* list, ImVec2 from, float width, int slot, float alpha = 1);  // a piece of its line
// The sign and the name, cut where it does not fit.
void run_label(const Compare& compare, const ComparedRun& run, float width);
// "A, B" of some runs.
void add_name(std::string& names, const std::string& name);
// A combo of the compared runs; true when another one was chosen.
bool run_combo(const char* id, const Compare& compare, std::string& chosen, float width);
// Columns of the table of one row a quantity and one column a run: begins it with the names as its head.
bool begin_run_table(const char* id, const Compare& compare, const char* first, float first_width, float least_width);

}  // namespace comera::studio
