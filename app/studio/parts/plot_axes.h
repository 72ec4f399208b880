// Axes of a plot: range, ticks and labels.
#pragma once
#include "app/studio/parts/plots.h"

namespace comera::studio {

// How numbers beside an axis are written (an ImPlotFormatter). `unit`: C string behind each, " MiB", or null.
int axis_label(double value, char* text, int size, void* unit);
int step_label(double value, char* text, int size, void* unit);  // there are no half steps
// Inside of the setup of a plot: round numbers on its y axis, as many as have room for their labels in a plot of this
// height. ImPlot counts pixels, not lines of text.
void setup_y_ticks(double low, double high, float height, bool log_scale = false);

// Range of the y axis of a tile for the visible steps, with a margin. False: no values.
bool y_range_of(const PlotView& view, const PlotTile& tile, bool log_scale, double& low, double& high);

// Maps a step of a line to the axis of the screen; the same for points, in place, with values in the unit of the plot.
double place(const PlotView& view, const PlotLine& line, double step);
void to_axis(const PlotView& view, const PlotLine& line, std::vector<double>& x, std::vector<double>& y);
// "step 1,200", and what the axis shows there.
std::string place_text(const PlotView& view, double at);

}  // namespace comera::studio
