// Axes of a plot: range, ticks and labels.
#pragma once
#include <implot.h>

#include "app/studio/parts/plots.h"

namespace comera::studio {

// Flags of every plot; it has no frame since its card may have an edge.
inline constexpr ImPlotFlags kPlotFlags =
    ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend | ImPlotFlags_NoFrame;
// Formats numbers at an axis (an ImPlotFormatter). `unit`: C string to append, " MiB", or null.
int axis_label(double value, char* text, int size, void* unit);
int step_label(double value, char* text, int size, void* unit);  // blank for fractions of steps
// Call during plot setup: round numbers on the y axis, as many as a plot of this height has room for. ImPlot itself counts pixels, not
// lines of text.
void setup_y_ticks(double low, double high, float height, bool log_scale = false);

// Range of the y axis for the visible steps, with a margin. False if there are no values.
bool y_range_of(const PlotView& view, const PlotTile& tile, bool log_scale, double& low, double& high);

// place(): position of a step of a line on the plot's axis. to_axis(): the same for points, in place, with values in the unit of the plot.
double place(const PlotView& view, const PlotLine& line, double step);
void to_axis(const PlotView& view, const PlotLine& line, std::vector<double>& x, std::vector<double>& y);
// "step 1,200", and the value of the axis there.
std::string place_text(const PlotView& view, double at);

}  // namespace comera::studio
