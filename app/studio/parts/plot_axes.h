// The axes of a plot: how far they go, where their round numbers stand and how those are written.
#pragma once
#include "app/studio/parts/plots.h"

namespace comera::studio {

// How numbers beside an axis are written (an ImPlotFormatter). `unit`: C string behind each, " MiB", or null.
int axis_label(double value, char* text, int size, void* unit);
int step_label(double value, char* text, int size, void* unit);  // there are no half steps
// Inside of the setup of a plot: round numbers on its y axis, as many as have room for their labels in a plot of this
// height. ImPlot counts pixels, not lines of text.
void setup_y_ticks(double low, double high, float height, bool log_scale = false);

// What the y axis of a tile has to show at the visible steps, with some room. False: there is nothing.
bool y_range_of(const PlotView& view, const PlotTile& tile, bool log_scale, double& low, double& high);

// Where a step of a line stands on the screen's axis; the same for points of it, in place, values in the plot's unit.
double place(const PlotView& view, const PlotLine& line, double step);
void to_axis(const PlotView& view, const PlotLine& line, std::vector<double>& x, std::vector<double>& y);
// "step 1,200", and what the axis shows there.
std::string place_text(const PlotView& view, double at);

}  // namespace comera::studio
