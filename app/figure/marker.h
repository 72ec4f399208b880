// Shapes on lines, which tell them apart where colours do not: in print, and for people who see two colours alike. A line
// has a few, at places of its own, so that they are seen where lines lie on each other.
#pragma once
#include <vector>

#include "app/figure/drawing.h"

namespace comera {

enum class Marker { none, circle, square, up, diamond, down, plus, cross, star };
inline constexpr int kMarkers = 8;  // without `none`

// Its outline around 0 for a radius of 1, clockwise where y goes downwards; all of about the same area. Empty for none.
const std::vector<Point>& outline_of(Marker marker);
// On a line of that width, beside texts of that height.
constexpr float marker_radius(float line_width, float text_height) { return 0.9f * line_width + 0.18f * text_height; }
void add_marker(Drawing& out, Marker marker, Point at, float radius, Color color, int clip = -1);

// Indices of the points of a line that get one, by rising x: about five to nine between `low` and `high` where it has enough
// points there, and one at least where it has any. They are next to places on x, not in the picture: they stay while it is
// moved and while a run trains. Each marker has places of its own. Points that are not finite get none.
std::vector<size_t> marked_points(const std::vector<double>& x, const std::vector<double>& y, double low, double high, Marker marker);
// The same of `count` points whose x goes back and forth: evenly among them.
std::vector<size_t> marked_points(size_t count, Marker marker);

}  // namespace comera
