#include "app/figure/marker.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace comera {
namespace {

constexpr double kMost = 9;  // most markers across a picture

std::vector<Point> polygon(int corners, float radius, float inner) {
  std::vector<Point> points;
  for (int i = 0; i < corners; ++i) {
    const float angle = (static_cast<float>(i) / static_cast<float>(corners) - 0.25f) * 6.2831853f, r = i % 2 == 0 ? radius : inner;
    points.emplace_back(r * std::cos(angle), r * std::sin(angle));
  }
  return points;
}

// A cross with arms of this length and half width; `turned` by 45 degrees.
std::vector<Point> arms(float length, float half, bool turned) {
  std::vector<Point> points = {{-half, -length}, {half, -length}, {half, -half}, {length, -half}, {length, half},   {half, half},
                               {half, length},   {-half, length}, {-half, half}, {-length, half}, {-length, -half}, {-half, -half}};
  if (turned)
    for (Point& point : points) point = {(point.x - point.y) * 0.70710678f, (point.x + point.y) * 0.70710678f};
  return points;
}

// Offset of each marker within an interval, so that markers of different lines do not coincide.
double share_of(Marker marker) { return (static_cast<int>(marker) - 0.5) / kMarkers; }

}  // namespace

const std::vector<Point>& outline_of(Marker marker) {
  static const std::array<std::vector<Point>, kMarkers + 1> kOutlines = {{
      {},
      polygon(16, 1, 1),
      {{-0.88f, -0.88f}, {0.88f, -0.88f}, {0.88f, 0.88f}, {-0.88f, 0.88f}},
      {{0, -1.4f}, {1.25f, 0.8f}, {-1.25f, 0.8f}},
      polygon(4, 1.25f, 1.25f),
      {{-1.25f, -0.8f}, {1.25f, -0.8f}, {0, 1.4f}},
      arms(1.3f, 0.36f, false),
      arms(1.3f, 0.36f, true),
      polygon(10, 1.5f, 0.65f),
  }};
  return kOutlines[static_cast<size_t>(marker)];
}

void add_marker(Drawing& out, Marker marker, Point at, float radius, Color color, int clip) {
  if (marker == Marker::circle) return out.circle(at, radius, color, clip);
  std::vector<Point> points;
  for (const Point& point : outline_of(marker)) points.emplace_back(at.x + radius * point.x, at.y + radius * point.y);
  out.polygon(std::move(points), color, clip);
}

std::vector<size_t> marked_points(const std::vector<double>& x, const std::vector<double>& y, double low, double high, Marker marker) {
  std::vector<size_t> out;
  if (marker == Marker::none || !(high > low)) return out;
  const auto begin = static_cast<size_t>(std::lower_bound(x.begin(), x.end(), low) - x.begin());
  const auto end = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), high) - x.begin());
  // A power of two, so that places change only when the visible range doubles.
  const double apart = std::exp2(std::ceil(std::log2((high - low) / kMost)));
  for (double place = (std::floor(low / apart) + share_of(marker)) * apart; place <= high; place += apart) {
    if (place < low) continue;
    size_t nearest = end;
    double best = apart / 2;
    const auto look = [&](size_t i) {
      const double away = std::abs(x[i] - place);
      if (std::isfinite(y[i]) && away < best) {
        best = away;
        nearest = i;
      }
      return away < best;  // the next one may be nearer
    };
    const auto after = static_cast<size_t>(std::lower_bound(x.begin(), x.end(), place) - x.begin());
    for (size_t i = after; i < end && look(i);) ++i;
    for (size_t i = std::min(after, end); i > begin && look(i - 1);) --i;
    if (nearest < end && (out.empty() || out.back() != nearest)) out.push_back(nearest);
  }
  for (size_t i = end; out.empty() && i > begin; --i)
    if (std::isfinite(y[i - 1])) out.push_back(i - 1);
  return out;
}

std::vector<size_t> marked_points(size_t count, Marker marker) {
  constexpr int kParts = 7;
  std::vector<size_t> out;
  if (marker == Marker::none) return out;
  for (int part = 0; part < kParts; ++part) {
    const auto i = static_cast<size_t>((part + share_of(marker)) / kParts * static_cast<double>(count));
    if (i < count && (out.empty() || out.back() != i)) out.push_back(i);
  }
  return out;
}

}  // namespace comera
