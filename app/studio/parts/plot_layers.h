// Layers of a plot from back to front: bands, lines, targets, marks, cursor. Call between BeginPlot() and EndPlot().
#pragma once
#include "app/studio/parts/plots.h"

namespace comera::studio {

// A dashed line through points in pixels; Dear ImGui and ImPlot have none.
void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight);
// A marker as in exported charts.
void draw_marker(ImDrawList* list, Marker marker, ImVec2 at, float radius, ImU32 color);
// Indices of finite values between values that are not finite: no line passes through them, so each gets a dot.
std::vector<size_t> lone_points(const std::vector<double>& y);

// Bands, raw and smoothed lines, drawn for a plot of `columns` pixels.
void draw_lines(PlotView& view, const PlotTile& tile, int columns, float weight);
// The size target, and its previous value in a faint colour.
void draw_target(const PlotView& view, const PlotTile& tile, int columns, float weight);
// Stage switches and edits.
void draw_marks(const PlotView& view, const std::vector<Mark>& marks);
// A warning icon where values are not finite.
void draw_bad_values(const PlotView& view, const PlotTile& tile);
// Shows the number of points outside the y axis from `low` to `high`.
void draw_hidden_count(const PlotView& view, const PlotTile& tile, double low, double high);
// The timeline's cursor and selection. `axis`: the x axis of the plot.
void draw_timeline_marks(const PlotView& view, const StepAxis& axis = {});
// The step under the mouse, in every plot, with the values there; also handles clicks.
void draw_cursor(PlotView& view, const PlotTile& tile);
// Finds the line under the mouse, for PlotView::hovered_owner.
void find_hovered_line(PlotView& view, const PlotTile& tile);

}  // namespace comera::studio
