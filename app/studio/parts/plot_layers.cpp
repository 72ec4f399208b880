#include "app/studio/parts/plot_layers.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

// Points of one line, kept so that frames do not allocate; drawing thread only.
std::vector<double> g_x, g_y;
std::vector<ImVec2> g_pixels;

void draw_lone_points(ImU32 color, float size) {
  ImPlot::PushPlotClipRect();
  for (const size_t i : lone_points(g_y)) ImPlot::GetPlotDrawList()->AddCircleFilled(ImPlot::PlotToPixels(g_x[i], g_y[i]), size, color);
  ImPlot::PopPlotClipRect();
}

// Markers of the line in g_x and g_y: one at each point, or a few.
void draw_markers(const PlotView& view, Marker marker, ImU32 color, float weight, bool each) {
  const float radius = marker_radius(weight, ImGui::GetFontSize());
  const auto draw = [&](size_t i) { draw_marker(ImPlot::GetPlotDrawList(), marker, ImPlot::PlotToPixels(g_x[i], g_y[i]), radius, color); };
  ImPlot::PushPlotClipRect();
  if (each) {
    for (size_t i = 0; i < g_x.size(); ++i)
      if (std::isfinite(g_y[i])) draw(i);
  } else {
    for (const size_t i : marked_points(g_x, g_y, view.axis.along(view.x_low), view.axis.along(view.x_high), marker)) draw(i);
  }
  ImPlot::PopPlotClipRect();
}

void draw_line(const PlotView& view, const Curve& curve, const PlotLine& line, ImU32 color, float weight, int columns, const char* label) {
  curve.envelope(line.axis.step(view.x_low), line.axis.step(view.x_high), columns, g_x, g_y);
  if (g_x.empty()) return;
  if (line.hold && view.last_step > g_x.back()) {
    g_x.push_back(view.last_step);
    g_y.push_back(g_y.back());
  }
  to_axis(view, line, g_x, g_y);
  ImPlotSpec spec;
  spec.LineColor = vec(color);
  spec.LineWeight = weight;
  const int count = static_cast<int>(g_x.size());
  const bool each = line.points && static_cast<float>(count) * em(1.3f) < static_cast<float>(columns);  // if there is room
  const Marker marker = view.markers ? line.marker : Marker::none;
  const bool dots = each && marker == Marker::none;
  if (dots) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = weight * 1.6f;
    spec.MarkerFillColor = vec(color);
    spec.MarkerLineColor = vec(color);
  }
  if (!line.dashed) {
    ImPlot::PlotLine(label, g_x.data(), g_y.data(), count, spec);
  } else {
    if (dots) ImPlot::PlotScatter(label, g_x.data(), g_y.data(), count, spec);
    ImPlot::PushPlotClipRect();
    for (size_t i = 0; i < g_x.size(); ++i) {  // values that are not finite split the line
      g_pixels.clear();
      for (; i < g_x.size() && std::isfinite(g_y[i]); ++i) g_pixels.push_back(ImPlot::PlotToPixels(g_x[i], g_y[i]));
      draw_dashed(ImPlot::GetPlotDrawList(), g_pixels, color, weight);
    }
    ImPlot::PopPlotClipRect();
  }
  if (!each) draw_lone_points(color, weight * 1.6f);
  if (marker != Marker::none) draw_markers(view, marker, color, weight, each);
}

// A band from the lowest to the highest value of every few pixels.
void draw_band(const PlotView& view, const PlotLine& line, int columns) {
  const double from = line.axis.step(view.x_low), to = line.axis.step(view.x_high);
  const int parts = std::clamp(columns / 3, 1, 400);
  std::vector<double> x, low, high;
  for (int i = 0; i < parts; ++i) {
    const double a = from + (to - from) * i / parts, b = from + (to - from) * (i + 1) / parts;
    double least = 0, most = 0, unused = 0;
    if (!line.low->extremes(a, b, least, unused) || !line.high->extremes(a, b, unused, most)) continue;
    x.push_back(place(view, line, (a + b) / 2));
    low.push_back(least * line.scale);
    high.push_back(most * line.scale);
  }
  if (x.size() < 2) return;
  ImPlotSpec spec;
  spec.FillColor = vec(line.color);
  spec.FillAlpha = 0.24f;
  spec.LineColor = vec(with_alpha(line.color, 0));
  ImPlot::PlotShaded("##band", x.data(), low.data(), high.data(), static_cast<int>(x.size()), spec);
}

// A vertical line at a position of the shared range.
void upright(const StepAxis& axis, double at_x, ImU32 color, float weight) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float x = std::round(ImPlot::PlotToPixels(axis.along(at_x), 0.0).x);
  ImPlot::GetPlotDrawList()->AddLine({x, at.y}, {x, at.y + size.y}, color, std::max(1.0f, weight));
}

// Linear interpolation between points; NaN beyond the ends.
double on_line(const Curve& curve, double step) {
  const auto after = static_cast<size_t>(std::upper_bound(curve.x().begin(), curve.x().end(), step) - curve.x().begin());
  if (after == 0 || (after == curve.size() && step > curve.x().back())) return NAN;
  if (after == curve.size()) return curve.last();
  const double x = curve.x()[after - 1], y = curve.y()[after - 1];
  return y + (curve.y()[after] - y) * (step - x) / (curve.x()[after] - x);
}

}  // namespace

void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight) {
  for (const auto& [from, to] : dashes({points.begin(), points.end()}, em(0.4f), em(0.3f)))
    list->AddLine({from.x, from.y}, {to.x, to.y}, color, weight);
}

void draw_marker(ImDrawList* list, Marker marker, ImVec2 at, float radius, ImU32 color) {
  if (marker == Marker::circle) return list->AddCircleFilled(at, radius, color);
  ImVec2 points[16];
  int count = 0;
  for (const Point& point : outline_of(marker)) points[count++] = {at.x + radius * point.x, at.y + radius * point.y};
  list->AddConcavePolyFilled(points, count, color);
}

std::vector<size_t> lone_points(const std::vector<double>& y) {
  std::vector<size_t> out;
  for (size_t i = 0; i < y.size(); ++i)
    if (std::isfinite(y[i]) && (i == 0 || !std::isfinite(y[i - 1])) && (i + 1 == y.size() || !std::isfinite(y[i + 1]))) out.push_back(i);
  return out;
}

void draw_timeline_marks(const PlotView& view, const StepAxis& axis) {
  if (view.selection_low >= 0 && view.selection_high >= view.x_low && view.selection_low <= view.x_high) {
    const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
    const auto x = [&](double step) { return std::clamp(ImPlot::PlotToPixels(axis.along(step), 0.0).x, at.x, at.x + size.x); };
    ImPlot::GetPlotDrawList()->AddRectFilled({x(view.selection_low), at.y}, {x(view.selection_high), at.y + size.y}, theme().accent_soft);
  }
  if (view.replay >= view.x_low && view.replay <= view.x_high) upright(axis, view.replay, theme().warning, em(0.1f));
}

void draw_marks(const PlotView& view, const std::vector<Mark>& marks) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  float named_to = -FLT_MAX;  // right end of the last name
  for (const Mark& mark : marks) {
    const auto step = static_cast<double>(mark.step);
    const bool stage = mark.kind == Mark::late_stage || mark.kind == Mark::early_stage;
    if (step < view.x_low || step > view.x_high || (!stage && mark.kind != Mark::edit)) continue;
    const float x = std::round(ImPlot::PlotToPixels(view.axis.at(step), 0.0).x);
    if (stage) {
      const char* name = mark.kind == Mark::late_stage ? "late" : "early";
      draw_dashed(list, {{x, at.y}, {x, at.y + size.y}}, with_alpha(color_of(mark.kind), 0.8f), std::max(1.0f, em(0.07f)));
      push_small();
      const float width = ImGui::CalcTextSize(name).x;
      const bool fits = x + width + em(0.5f) < at.x + size.x;
      const float begin = fits ? x + em(0.3f) : x - width - em(0.3f);
      if (begin > named_to) {  // otherwise no name; the timeline shows it
        list->AddText({begin, at.y}, color_of(mark.kind), name);
        named_to = begin + width + em(0.2f);
      }
      ImGui::PopFont();
    } else {
      list->AddTriangleFilled({x - em(0.25f), at.y + size.y}, {x + em(0.25f), at.y + size.y}, {x, at.y + size.y - em(0.4f)}, theme().dim);
    }
  }
}

void draw_cursor(PlotView& view, const PlotTile& tile) {
  draw_timeline_marks(view, view.axis);
  if (ImPlot::IsPlotHovered()) {
    view.hovered = std::round(view.axis.step_along(ImPlot::GetPlotMousePos().x) / view.grain) * view.grain;
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
        ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < em(0.3f) * em(0.3f))
      view.clicked = view.hovered;
  }
  if (view.cursor < view.x_low || view.cursor > view.x_high || view.cursor < 0) return;
  upright(view.axis, view.cursor, with_alpha(theme().dim, 0.6f), em(0.06f));
  if (!ImPlot::IsPlotHovered() || !ImGui::BeginTooltip()) return;
  text_dim(place_text(view, view.cursor));
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty() || line.axis.step(view.cursor) > line.end) continue;
    const double step = line.axis.step(view.cursor), value = line.curve->at(step) * line.scale;
    if (!std::isfinite(value)) continue;
    ImGui::PushStyleColor(ImGuiCol_Text, line.color);
    ImGui::Bullet();
    ImGui::PopStyleColor();
    ImGui::SameLine();
    std::string text = std::string(line.label) + "  " + significant(value, 4) + " " + tile.unit;
    if (line.low && line.high)
      text += "  (" + significant(line.low->at(step) * line.scale, 4) + " to " + significant(line.high->at(step) * line.scale, 4) + ")";
    ImGui::TextUnformatted(text.c_str());
  }
  ImGui::EndTooltip();
}

void draw_bad_values(const PlotView& view, const PlotTile& tile) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (const PlotLine& line : tile.lines) {
    if (!line.curve) continue;
    const std::vector<double>& gaps = line.curve->gaps();
    auto gap = std::lower_bound(gaps.begin(), gaps.end(), line.axis.step(view.x_low));
    const auto end = std::upper_bound(gap, gaps.end(), line.axis.step(view.x_high));
    while (gap != end) {  // draws icons side by side rather than over each other
      const float x = ImPlot::PlotToPixels(place(view, line, *gap), 0.0).x;
      draw_icon(list, Icon::warning, {x, at.y + size.y - em(0.7f)}, em(0.9f), theme().bad);
      const double beside = view.axis.step_along(ImPlot::PixelsToPlot(x + em(0.5f), at.y).x);
      gap = std::lower_bound(std::next(gap), end, line.axis.step(beside));
    }
  }
}

// The size target, and its previous value in a faint colour.
void draw_target(const PlotView& view, const PlotTile& tile, int columns, float weight) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 at = ImPlot::GetPlotPos(), box = ImPlot::GetPlotSize();
  if (tile.target && !tile.target->empty()) {
    tile.target->envelope(view.x_low, view.x_high, columns, g_x, g_y);
    std::vector<ImVec2> points;
    for (size_t i = 0; i < g_x.size(); ++i)
      if (g_y[i] > 0) points.push_back(ImPlot::PlotToPixels(view.axis.at(g_x[i]), g_y[i] * tile.target_scale));  // 0: no target
    draw_dashed(list, points, theme().dim, weight * 0.8f);
    const double before = tile.ghost_step >= 0 ? tile.target->at(tile.ghost_step - 1) * tile.target_scale : 0;
    if (before > 0 && before != tile.target->last() * tile.target_scale) {
      const ImVec2 from = ImPlot::PlotToPixels(view.axis.at(tile.ghost_step), before);
      draw_dashed(list, {{std::max(from.x, at.x), from.y}, {at.x + box.x, from.y}}, with_alpha(theme().dim, 0.4f), weight * 0.8f);
      const std::string text = "was " + significant(before, 3);
      list->AddText({at.x + box.x - ImGui::CalcTextSize(text.c_str()).x - em(0.3f), from.y}, with_alpha(theme().dim, 0.7f), text.c_str());
    }
  }
  if (tile.target_value > 0) {
    const float y = ImPlot::PlotToPixels(view.axis.along(view.x_low), tile.target_value).y;
    draw_dashed(list, {{at.x, y}, {at.x + box.x, y}}, theme().dim, weight * 0.8f);
  }
}

// Shows the number of points outside the y axis.
void draw_hidden_count(const PlotView& view, const PlotTile& tile, double low, double high) {
  constexpr size_t kMost = 9999;
  size_t hidden = 0;
  for (const PlotLine& line : tile.lines)
    if (line.curve && !line.curve->empty() && hidden < kMost)
      hidden +=
          line.curve->outside(line.axis.step(view.x_low), line.axis.step(view.x_high), low / line.scale, high / line.scale, kMost - hidden);
  if (hidden == 0) return;
  const std::string text = (hidden >= kMost ? "more than 9,998" : thousands(static_cast<double>(hidden))) + " hidden";
  const ImVec2 at = ImPlot::GetPlotPos(), box = ImPlot::GetPlotSize(), size = ImGui::CalcTextSize(text.c_str());
  const ImVec2 from(at.x + box.x - size.x - em(0.4f), at.y + em(0.1f));
  ImPlot::GetPlotDrawList()->AddRectFilled({from.x - em(0.2f), from.y}, {from.x + size.x + em(0.2f), from.y + size.y}, theme().card,
                                           em(0.2f));
  ImPlot::GetPlotDrawList()->AddText(from, theme().warning, text.c_str());
}

void draw_lines(PlotView& view, const PlotTile& tile, int columns, float weight) {
  for (const PlotLine& line : tile.lines)
    if (line.low && line.high && !line.low->empty()) draw_band(view, line, columns);
  for (const PlotLine& line : tile.lines) {  // raw lines first, behind all smoothed ones
    if (!line.curve || line.curve->empty() || !line.smooth || view.smoothing <= 0) continue;
    PlotLine raw = line;
    raw.dashed = false;
    raw.marker = Marker::none;
    draw_line(view, *line.curve, raw, with_alpha(line.color, line.raw_alpha), std::max(1.0f, weight * 0.6f * line.weight), columns,
              "##raw");
  }
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    draw_line(view, smooth ? view.smooth(*line.curve) : *line.curve, line, line.color, weight * line.weight, columns, line.label);
  }
}

void find_hovered_line(PlotView& view, const PlotTile& tile) {
  if (!ImPlot::IsPlotHovered()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const double at = view.axis.step_along(ImPlot::GetPlotMousePos().x);
  float nearest = em(0.6f);
  for (const PlotLine& line : tile.lines) {
    if (line.owner < 0 || !line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    const double value = on_line(smooth ? view.smooth(*line.curve) : *line.curve, line.axis.step(at)) * line.scale;
    if (!std::isfinite(value)) continue;
    const float away = std::abs(ImPlot::PlotToPixels(ImPlot::GetPlotMousePos().x, value).y - mouse.y);
    if (away >= nearest) continue;
    nearest = away;
    view.hovered_owner = line.owner;
  }
}

}  // namespace comera::studio
