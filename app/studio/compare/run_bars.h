// One stacked bar per run on a common scale: on the screen and as an exported chart.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

#include "app/studio/compare/compare.h"
#include "app/studio/parts/stacked_bars.h"

namespace comera::studio {

struct RunBar {
  struct Figure {
    std::string text;
    ImU32 color;
  };
  const ComparedRun* run = nullptr;
  std::vector<BarPart> parts;   // from left to right; parts without a value are not drawn
  std::vector<Figure> figures;  // texts to the right of the bar; an exported chart has the first one only
};

// Draws all bars one below another. `full`: value of the longest bar. `item`: name of the bars for tests.
void draw_run_bars(Compare& compare, const std::vector<RunBar>& bars, double full, const char* item);
// The same as a chart for export, without a table. A run without parts has its figure only.
Chart run_bars_chart(const Compare& compare, const char* id, const char* title, const std::vector<BarKind>& kinds,
                     const std::vector<RunBar>& bars, double full);

}  // namespace comera::studio
