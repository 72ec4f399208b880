#include "app/studio/parts/plot_over.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

struct DrawnLine {
  const PlotLine* line = nullptr;
  const Curve* curve = nullptr;
  OverPoints points;
};

std::vector<DrawnLine> lines_over(PlotView& view, const PlotTile& tile, int columns) {
  std::vector<DrawnLine> out;
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty() || !line.over || line.over->empty()) continue;
    DrawnLine drawn{&line, line.smooth && view.smoothing > 0 ? &view.smooth(*line.curve) : line.curve, {}};
    drawn.points = points_over(*line.over, *drawn.curve, line.axis.step(view.x_low), line.axis.step(view.x_high), columns);
    for (double& y : drawn.points.y) y *= line.scale;
    out.push_back(std::move(drawn));
  }
  return out;
}

struct Ends {
  double low = 1e300, high = -1e300;
  void take(const std::vector<double>& values, bool positive) {
    for (const double value : values) {
      if (!std::isfinite(value) || (positive && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  void widen(bool log_scale) {
    if (low > high) low = log_scale ? 0.1 : 0, high = 1;
    if (log_scale) {
      high = std::max(high, low * 1.01);
      const double room = std::pow(high / low, 0.06);
      low /= room;
      high *= room;
      return;
    }
    double room = (high - low) * 0.06;
    if (!(room > 0)) room = std::max(std::abs(high) * 0.05, 1e-6);
    low -= room;
    high += room;
  }
};

// Rings on the lines at a position of the shared axis.
void ring(const std::vector<DrawnLine>& lines, double at, ImU32 color) {
  for (const DrawnLine& drawn : lines) {
    const double step = drawn.line->axis.step(at), x = drawn.line->over->at(step), y = drawn.curve->at(step) * drawn.line->scale;
    if (std::isfinite(x) && std::isfinite(y))
      ImPlot::GetPlotDrawList()->AddCircle(ImPlot::PlotToPixels(x, y), em(0.4f), color, 0, std::max(1.5f, em(0.12f)));
  }
}

void hover(PlotView& view, const PlotTile& tile, const std::vector<DrawnLine>& lines) {
  if (!ImPlot::IsPlotHovered()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const DrawnLine* nearest = nullptr;
  size_t index = 0;
  float best = em(1.2f);
  for (const DrawnLine& drawn : lines)
    for (size_t i = 0; i < drawn.points.x.size(); ++i) {
      const ImVec2 at = ImPlot::PlotToPixels(drawn.points.x[i], drawn.points.y[i]);
      const float away = std::hypot(at.x - mouse.x, at.y - mouse.y);
      if (!(away < best)) continue;
      best = away;
      nearest = &drawn;
      index = i;
    }
  if (!nearest) return;
  const double step = nearest->points.steps[index];
  view.hovered = nearest->line->axis.at(step);
  view.hovered_owner = nearest->line->owner;
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !mouse_dragged()) view.clicked = view.hovered;
  if (!ImGui::BeginTooltip()) return;
  text_dim("step " + thousands(step));
  ImGui::TextUnformatted((view.over_title + "  " + significant(nearest->points.x[index], 4)).c_str());
  ImGui::TextUnformatted((std::string(nearest->line->label) + "  " + significant(nearest->points.y[index], 4) + " " + tile.unit).c_str());
  ImGui::EndTooltip();
}

}  // namespace

OverPoints points_over(const Curve& over, const Curve& curve, double from, double to, int columns) {
  OverPoints out;
  const bool by_curve = curve.size() <= over.size();
  const Curve &few = by_curve ? curve : over, &many = by_curve ? over : curve;
  std::vector<double> steps, values;
  few.envelope(from, to, columns, steps, values);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < from || steps[i] > to) continue;
    const double other = many.at(steps[i]);
    if (!std::isfinite(other) || !std::isfinite(values[i])) continue;
    out.steps.push_back(steps[i]);
    out.x.push_back(by_curve ? other : values[i]);
    out.y.push_back(by_curve ? values[i] : other);
  }
  return out;
}

bool is_over_metric(const PlotTile& tile) {
  return std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.over != nullptr; });
}

void draw_over(PlotView& view, const PlotTile& tile, ImVec2 size) {
  const bool log_scale = log_scale_of(view, tile);
  const std::vector<DrawnLine> lines = lines_over(view, tile, std::max(16, static_cast<int>(size.x)));
  Ends x, y;
  for (const DrawnLine& drawn : lines) {
    x.take(drawn.points.x, false);
    y.take(drawn.points.y, log_scale);
  }
  x.widen(false);
  y.widen(log_scale);
  PlotLook::Zoom& zoom = view.looks[tile.id].zoom;
  if (zoom.over == view.over_title && !(log_scale && zoom.y_low <= 0)) {
    x = {zoom.x_low, zoom.x_high};
    y = {zoom.y_low, zoom.y_high};
  }
  const Ends x_was = x, y_was = y;
  const std::string id = std::string(tile.id) + "##over";
  if (!ImPlot::BeginPlot(id.c_str(), size, kPlotFlags)) return;
  ImPlot::SetupAxes(size.y > em(9) ? view.over_title.c_str() : nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLinks(ImAxis_X1, &x.low, &x.high);
  ImPlot::SetupAxisFormat(ImAxis_X1, axis_label);
  if (log_scale) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  ImPlot::SetupAxisLinks(ImAxis_Y1, &y.low, &y.high);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label);
  setup_y_ticks(y.low, y.high, size.y, log_scale);
  ImPlot::SetupFinish();
  const float weight = line_weight(view);
  for (const DrawnLine& drawn : lines) {
    ImPlotSpec spec;
    spec.LineColor = vec(with_alpha(drawn.line->color, drawn.points.x.size() > 400 ? 0.6f : 1));
    spec.LineWeight = weight * drawn.line->weight;
    if (drawn.points.x.size() < 60) {
      spec.Marker = ImPlotMarker_Circle;
      spec.MarkerSize = weight * 1.6f;
      spec.MarkerFillColor = vec(drawn.line->color);
      spec.MarkerLineColor = vec(drawn.line->color);
    }
    ImPlot::PlotLine(drawn.line->label, drawn.points.x.data(), drawn.points.y.data(), static_cast<int>(drawn.points.x.size()), spec);
  }
  ImPlot::PushPlotClipRect();
  if (view.markers)
    for (const DrawnLine& drawn : lines)
      for (const size_t i : marked_points(drawn.points.x.size(), drawn.line->marker))
        draw_marker(ImPlot::GetPlotDrawList(), drawn.line->marker, ImPlot::PlotToPixels(drawn.points.x[i], drawn.points.y[i]),
                    marker_radius(weight, ImGui::GetFontSize()), drawn.line->color);
  if (view.replay >= 0) ring(lines, view.replay, theme().warning);
  if (view.cursor >= 0) ring(lines, view.cursor, theme().text);
  hover(view, tile, lines);
  ImPlot::PopPlotClipRect();
  const bool hovered = ImPlot::IsPlotHovered();
  ImPlot::EndPlot();
  if (hovered && ImGui::IsMouseDoubleClicked(0))
    zoom = {};
  else if ((x.low != x_was.low || x.high != x_was.high || y.low != y_was.low || y.high != y_was.high) && x.high > x.low && y.high > y.low)
    zoom = {view.over_title, x.low, x.high, y.low, y.high};
}

void add_over(PlotView& view, const PlotTile& tile, Figure& figure) {
  figure.x_title = view.over_title;
  figure.x_low = figure.x_high = 0;
  for (DrawnLine& drawn : lines_over(view, tile, 1 << 24)) {
    FigureLine line{.label = drawn.line->label, .color = drawn.line->color, .x = std::move(drawn.points.x), .y = std::move(drawn.points.y)};
    line.steps = std::move(drawn.points.steps);
    line.dashed = drawn.line->dashed;
    if (view.markers) line.marker = drawn.line->marker;
    figure.lines.push_back(std::move(line));
  }
}

bool choose_over(std::string& over, const std::vector<std::string>& names) {
  bool chosen = false;
  ImGui::Separator();
  text_dim("A metric at the same step");
  for (const std::string& name : names)
    if (ImGui::Selectable((whole_label(name) + "###over-" + name).c_str(), name == over)) {
      over = name;
      chosen = true;
    }
  return chosen;
}

}  // namespace comera::studio
