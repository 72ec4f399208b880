#include "app/figure/pareto.h"

#include <algorithm>
#include <cmath>

#include "app/figure/colors.h"

namespace comera {

std::vector<ParetoPoint> pareto_front(std::vector<ParetoPoint> points) {
  std::sort(points.begin(), points.end(),
            [](const ParetoPoint& a, const ParetoPoint& b) { return a.cost != b.cost ? a.cost < b.cost : a.score > b.score; });
  std::vector<ParetoPoint> front;
  for (const ParetoPoint& point : points)
    if (front.empty() || point.score > front.back().score) front.push_back(point);
  return front;
}

Figure pareto_figure(const std::vector<NamedParetoPoint>& points, bool by_loss, const std::string& title, const std::string& note,
                     const std::string& x_title) {
  Figure figure{.title = title, .note = note, .unit = by_loss ? "" : "%", .x_title = x_title, .line_width = 1.4f};
  const double shown = by_loss ? -1 : 100;
  std::vector<ParetoPoint> all;
  double low = points.front().point.cost, high = low;
  for (const NamedParetoPoint& named : points) {
    all.push_back(named.point);
    low = std::min(low, named.point.cost);
    high = std::max(high, named.point.cost);
  }
  const double room = std::max((high - low) * 0.08, high * 0.02);
  figure.x_low = low - room;
  figure.x_high = high + room;
  FigureLine stairs{.color = theme().dim, .stairs = true, .dashed = true, .no_data = true};
  for (const ParetoPoint& point : pareto_front(all)) {
    stairs.x.push_back(point.cost);
    stairs.y.push_back(point.score * shown);
  }
  stairs.x.push_back(figure.x_high);
  stairs.y.push_back(stairs.y.back());
  figure.lines.push_back(std::move(stairs));
  const size_t colors = theme().series.size();
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = points[i].point.cost, y = points[i].point.score * shown, deviation = points[i].deviation * std::abs(shown);
    const Color color = theme().series[i % colors];
    if (deviation > 0) figure.lines.push_back({.color = color, .x = {x, x}, .y = {y - deviation, y + deviation}, .no_data = true});
    // Beyond the last colour they begin again, with the next marker.
    const auto marker = static_cast<Marker>(1 + (i + i / colors) % kMarkers);
    figure.lines.push_back({.label = points[i].name, .color = color, .x = {x}, .y = {y}, .marker = marker});
  }
  return figure;
}

}  // namespace comera
