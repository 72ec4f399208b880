// A metric drawn over another metric instead of the x axis: values of both at the same steps, in the order of the steps.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/plots.h"

namespace comera::studio {

struct OverPoints {
  std::vector<double> steps, x, y;
};
// Points from step `from` to step `to`, limited by `columns`: at the steps of the curve with fewer points, with the last value of the other
// one.
OverPoints points_over(const Curve& over, const Curve& curve, double from, double to, int columns);

bool is_over_metric(const PlotTile& tile);  // some line has PlotLine::over
// The plot of such a tile. Its axes fit the data until the user zooms by the wheel, a drag or a box (right button); a double click fits
// them again. A ring shows the step under the mouse of the other plots.
void draw_over(PlotView& view, const PlotTile& tile, ImVec2 size);
// Adds the lines of such a tile to a figure.
void add_over(PlotView& view, const PlotTile& tile, Figure& figure);

// Items of an axis combo: the metrics by name. True if one was selected.
bool choose_over(std::string& over, const std::vector<std::string>& names);

}  // namespace comera::studio
