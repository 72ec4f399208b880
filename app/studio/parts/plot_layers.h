// Layers of a plot from back to front: bands, lines, targets, marks, cursor. All inside of BeginPlot().
#pragma once
#include "app/studio/parts/plots.h"

namespace comera::studio {

// A dashed line through pixels, which neither Dear ImGui nor ImPlot has.
void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight);
// One of those that charts have.
void draw_marker(ImDrawList* list, Marker marker, ImVec2 at, float radius, ImU32 color);
// Finite values between two non-finite ones: no line passes through them, so each gets a dot.
std::vector<size_t> lone_points(const std::vector<double>& y);

// Bands, raw lines and smooth ones, at most `columns` points wide.
void draw_lines(PlotView& view, const PlotTile& tile, int columns, float weight);
// The size target, and faintly its previous value.
void draw_target(const PlotView& view, const PlotTile& tile, int columns, float weight);
// The late stage, and edits.
void draw_marks(const PlotView& view, const std::vector<Mark>& marks);
// A sign where values are not finite.
void draw_bad_values(const PlotView& view, const PlotTile& tile);
// How many points the y axis, from `low` to `high`, leaves out.
void draw_hidden_count(const PlotView& view, const PlotTile& tile, double low, double high);
// Where x is `axis`: the timeline's cursor and its selection.
void draw_timeline_marks(const PlotView& view, const StepAxis& axis = {});
// The step under the mouse, in every plot, with the values there; and what the mouse does to it.
void draw_cursor(PlotView& view, const PlotTile& tile);
// Whose line is under the mouse: PlotView::hovered_owner.
void find_hovered_line(PlotView& view, const PlotTile& tile);

}  // namespace comera::studio
