// A metric drawn over another one instead of an axis: their values at the same steps, in the order of the steps.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/plots.h"

namespace comera::studio {

struct OverPoints {
  std::vector<double> steps, x, y;
};
// Of the steps between two, `columns` bounds how many: where one of both has fewer points, at those; of the other the value
// that is in force then.
OverPoints points_over(const Curve& over, const Curve& curve, double from, double to, int columns);

bool is_over_metric(const PlotTile& tile);  // some line has PlotLine::over
// The plot of such a tile. Its axes fit what is there until it is zoomed: scrolling and dragging, by a box with the right
// button; a double click shows all of it again. The cursor is a ring at the step of the other plots.
void draw_over(PlotView& view, const PlotTile& tile, ImVec2 size);
// Its lines as a figure.
void add_over(PlotView& view, const PlotTile& tile, Figure& figure);

// Inside of the combo of an axis: the metrics, by name. True when one was chosen.
bool choose_over(std::string& over, const std::vector<std::string>& names);

}  // namespace comera::studio
