// Stacked bars on a common scale: on the screen and as an exported chart.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

#include "app/studio/parts/export.h"
#include "core/tensor/memory.h"

namespace comera::studio {

struct BarPart {
  double value;
  ImU32 color;
  std::string text;  // tooltip text, which its menu copies
};
// Parts by purpose, with the colours and titles that they have everywhere.
std::vector<BarPart> purpose_parts(const MemoryByPurpose& memory);

// Paints the parts from left to right; parts without a value are not drawn. `full` is as long as `size.x`. Returns the part under the
// mouse; null = none.
const BarPart* paint_parts(const std::vector<BarPart>& parts, double full, ImVec2 at, ImVec2 size, float alpha = 1);

struct BarKind {  // an entry of the legend
  std::string title;
  ImU32 color;
};
struct StackedBar {
  std::string label;
  std::vector<BarPart> parts;
  std::string figure;  // behind its end
  ImU32 figure_color;
};
// A chart for export, without a table.
Chart stacked_bars_chart(const char* id, const char* title, const std::string& note, const std::vector<BarKind>& kinds,
                         const std::vector<StackedBar>& bars, double full);

}  // namespace comera::studio
