// Marker shapes that distinguish lines without colour: in print, and for colour-blind readers. Each line has a few markers at its own
// places, so they stay visible where lines overlap.
#pragma once
#include <vector>

#include "app/figure/drawing.h"

namespace comera {

enum class Marker { none, circle, square, up, diamond, down, plus, cross, star };
inline constexpr int kMarkers = 8;  // not counting `none`

// Outline around 0 with radius 1, clockwise with y down; all shapes have about the same area. Empty for `none`.
const std::vector<Point>& outline_of(Marker marker);
// Radius of a marker on a line of this width, next to text of this height.
constexpr float marker_radius(float line_width, float text_height) { return 0.9f * line_width + 0.18f * text_height; }
void add_marker(Drawing& out, Marker marker, Point at, float radius, Color color, int clip = -1);

// Indices of the points that get a marker, for ascending x: about five to nine between `low` and `high` if there are enough points,
// at least one if there are any. Places are fixed on x, not on the screen, so markers stay while the plot moves or a run trains.
// Each marker kind has places of its own. Points that are not finite get none.
std::vector<size_t> marked_points(const std::vector<double>& x, const std::vector<double>& y, double low, double high, Marker marker);
// The same for `count` points whose x is not monotonic: evenly spaced by index.
std::vector<size_t> marked_points(size_t count, Marker marker);

}  // namespace comera
