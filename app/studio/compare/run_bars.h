// One stacked bar per run on a common scale: on the screen and as an exported chart.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

#include "app/studio/compare/compare.h"
#include "app/studio/parts/export.h"

namespace comera::studio {

struct BarPart {
  double value;
  ImU32 color;
  std::string text;  // what its tooltip tells, and its menu copies
};
struct RunBar {
  struct Figure {
    std::string text;
    ImU32 color;
  };
  const ComparedRun* run = nullptr;
  std::vector<BarPart> parts;   // from the left; those of no value are not drawn
  std::vector<Figure> figures;  // beside it on the screen; the first one also in the chart
};
struct BarKind {  // of the chart's legend
  std::string title;
  ImU32 color;
};

// All of them under each other, `full` being the value of the widest one; `item`: what tests find the bars by.
void draw_run_bars(Compare& compare, const std::vector<RunBar>& bars, double full, const char* item);
// The same to be exported, without its table. A run without parts has its figure alone.
Chart run_bars_chart(const Compare& compare, const char* id, const char* title, const std::vector<BarKind>& kinds,
                     const std::vector<RunBar>& bars, double full);

}  // namespace comera::studio
