#include "app/studio/plots.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"

namespace comera::studio {
namespace {

// Points of one line, kept so that a frame allocates nothing; one thread draws.
std::vector<double> g_x, g_y;
std::vector<ImVec2> g_pixels;

int value_label(double value, char* text, int size, void*) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6) return std::snprintf(text, static_cast<size_t>(size), "%gM", value / 1e6);
  if (magnitude >= 1e4) return std::snprintf(text, static_cast<size_t>(size), "%gk", value / 1e3);
  if (magnitude > 0 && magnitude < 1e-3) return std::snprintf(text, static_cast<size_t>(size), "%.0e", value);
  return std::snprintf(text, static_cast<size_t>(size), "%.4g", value);
}

// 12,400 -> "12.4k"; short, since it stands under a small plot. There are no half steps.
int step_label(double value, char* text, int size, void*) {
  if (std::abs(value - std::round(value)) > 1e-6) return std::snprintf(text, static_cast<size_t>(size), " ");
  if (std::abs(value) >= 1e6) return std::snprintf(text, static_cast<size_t>(size), "%gM", value / 1e6);
  if (std::abs(value) >= 1e4) return std::snprintf(text, static_cast<size_t>(size), "%gk", value / 1e3);
  return std::snprintf(text, static_cast<size_t>(size), "%.0f", value);
}

}  // namespace

void PlotView::begin_frame() {
  to_smooth = kSmoothedAFrame;
  smoothing_left = false;
}

const Curve& PlotView::smooth(const Curve& curve) {
  Smoothed& of = smoothed[&curve];
  to_smooth -= of.update(curve, smoothing, to_smooth);
  smoothing_left = smoothing_left || !of.done();
  return of.curve();
}

void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight) {
  for (const auto& [from, to] : dashes(points, em(0.4f), em(0.3f))) list->AddLine(from, to, color, weight);
}

namespace {

void draw_line(const PlotView& view, const Curve& curve, const PlotLine& line, ImU32 color, float weight, int columns, const char* label) {
  curve.envelope(line.axis.step(view.x_low), line.axis.step(view.x_high), columns, g_x, g_y);
  if (g_x.empty()) return;
  if (line.hold && view.last_step > g_x.back()) {
    g_x.push_back(view.last_step);
    g_y.push_back(g_y.back());
  }
  for (double& x : g_x) x = line.axis.at(x);
  for (double& y : g_y) y *= line.scale;
  ImPlotSpec spec;
  spec.LineColor = vec(color);
  spec.LineWeight = weight;
  const int count = static_cast<int>(g_x.size());
  const bool markers = line.points && static_cast<float>(count) * em(1.3f) < static_cast<float>(columns);
  if (markers) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = weight * 1.6f;
    spec.MarkerFillColor = vec(color);
    spec.MarkerLineColor = vec(color);
  }
  if (!line.dashed) {
    ImPlot::PlotLine(label, g_x.data(), g_y.data(), count, spec);
    return;
  }
  if (markers) ImPlot::PlotScatter(label, g_x.data(), g_y.data(), count, spec);
  g_pixels.clear();
  for (size_t i = 0; i < g_x.size(); ++i)
    if (std::isfinite(g_y[i])) g_pixels.push_back(ImPlot::PlotToPixels(g_x[i], g_y[i]));
  ImPlot::PushPlotClipRect();
  draw_dashed(ImPlot::GetPlotDrawList(), g_pixels, color, weight);
  ImPlot::PopPlotClipRect();
}

void widen(const Curve& curve, const PlotView& view, const StepAxis& axis, double scale, double& low, double& high) {
  double a = 0, b = 0;
  if (!curve.extremes(axis.step(view.x_low), axis.step(view.x_high), a, b)) {
    a = b = curve.at(axis.step(view.x_high));  // a long stretch without a point
    if (!std::isfinite(a)) return;
  }
  low = std::min(low, a * scale);
  high = std::max(high, b * scale);
}

// Of the raw values that are visible, what 1 of 100 lies outside of.
void widen_most(const Curve& curve, const PlotView& view, const StepAxis& axis, double scale, double& low, double& high) {
  const auto begin = std::lower_bound(curve.x().begin(), curve.x().end(), axis.step(view.x_low)) - curve.x().begin();
  const auto end = std::upper_bound(curve.x().begin(), curve.x().end(), axis.step(view.x_high)) - curve.x().begin();
  const auto stride = std::max<std::ptrdiff_t>(1, (end - begin) / 2000);  // a sample tells it well enough
  std::vector<double>& values = g_y;
  values.clear();
  for (auto i = begin; i < end; i += stride)
    if (const double y = curve.y()[static_cast<size_t>(i)]; std::isfinite(y)) values.push_back(y);
  if (values.size() < 20) return widen(curve, view, axis, scale, low, high);
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 100);
  std::nth_element(values.begin(), values.begin() + cut, values.end());
  low = std::min(low, values[static_cast<size_t>(cut)] * scale);
  std::nth_element(values.begin(), values.end() - 1 - cut, values.end());
  high = std::max(high, values[values.size() - 1 - static_cast<size_t>(cut)] * scale);
}

bool limits_of(PlotView& view, const PlotTile& tile, bool log_scale, double& low, double& high) {
  low = 1e300;
  high = -1e300;
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    if (!view.outliers)
      widen_most(*line.curve, view, line.axis, line.scale, low, high);
    else
      widen(*line.curve, view, line.axis, line.scale, low, high);
  }
  if (low > high) return false;
  const double data_low = low, data_high = high;
  if (tile.target) widen(*tile.target, view, {}, tile.target_scale, low, high);
  if (tile.target_value > 0) {
    low = std::min(low, tile.target_value);
    high = std::max(high, tile.target_value);
  }
  // A target far away must not flatten the curve.
  low = std::max(low, data_low - 4 * (data_high - data_low + 1e-12));
  if (log_scale) {
    low = std::max(low, 1e-12);
    high = std::max(high, low * 1.01);
    const double room = std::pow(high / low, 0.06);
    low /= room;
    high *= room;
    return true;
  }
  if (tile.from_zero) low = std::min(low, 0.0);
  double room = (high - low) * 0.07;
  if (!(room > 0)) room = std::max(std::abs(high) * 0.05, 1e-6);
  high += room;
  if (!(tile.from_zero && low == 0)) low -= room;
  return true;
}

void draw_marks(const PlotView& view, const std::vector<Mark>& marks) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  for (const Mark& mark : marks) {
    const auto step = static_cast<double>(mark.step);
    if (step < view.x_low || step > view.x_high || (mark.kind != Mark::late_stage && mark.kind != Mark::edit)) continue;
    const float x = std::round(ImPlot::PlotToPixels(step, 0.0).x);
    if (mark.kind == Mark::late_stage) {
      draw_dashed(list, {{x, at.y}, {x, at.y + size.y}}, with_alpha(theme().series[3], 0.8f), std::max(1.0f, em(0.07f)));
      push_small();
      const float width = ImGui::CalcTextSize("late").x;
      const bool fits = x + width + em(0.5f) < at.x + size.x;
      list->AddText({fits ? x + em(0.3f) : x - width - em(0.3f), at.y}, theme().series[3], "late");
      ImGui::PopFont();
    } else {
      list->AddTriangleFilled({x - em(0.25f), at.y + size.y}, {x + em(0.25f), at.y + size.y}, {x, at.y + size.y - em(0.4f)}, theme().dim);
    }
  }
}

}  // namespace

void draw_replay_line(const PlotView& view) {
  if (view.replay < view.x_low || view.replay > view.x_high) return;
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float x = std::round(ImPlot::PlotToPixels(view.replay, 0.0).x);
  ImPlot::GetPlotDrawList()->AddLine({x, at.y}, {x, at.y + size.y}, theme().warning, std::max(1.0f, em(0.1f)));
}

namespace {

// The step under the mouse, in every plot, with the values there.
void draw_cursor(PlotView& view, const PlotTile& tile) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  draw_replay_line(view);
  if (ImPlot::IsPlotHovered()) {
    view.hovered = std::round(ImPlot::GetPlotMousePos().x / view.grain) * view.grain;
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
        ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < em(0.3f) * em(0.3f))
      view.clicked = view.hovered;
  }
  if (view.cursor < view.x_low || view.cursor > view.x_high || view.cursor < 0) return;
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const float x = std::round(ImPlot::PlotToPixels(view.cursor, 0.0).x);
  list->AddLine({x, at.y}, {x, at.y + size.y}, with_alpha(theme().dim, 0.6f), std::max(1.0f, em(0.06f)));
  if (!ImPlot::IsPlotHovered() || !ImGui::BeginTooltip()) return;
  text_dim(std::string(view.unit) + " " + (view.grain < 1 ? significant(view.cursor, 4) : thousands(view.cursor)));
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const double value = line.curve->at(line.axis.step(view.cursor)) * line.scale;
    if (!std::isfinite(value)) continue;
    ImGui::PushStyleColor(ImGuiCol_Text, line.color);
    ImGui::Bullet();
    ImGui::PopStyleColor();
    ImGui::SameLine();
    ImGui::Text("%s  %s %s", line.label, significant(value, 4).c_str(), tile.unit);
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
    while (gap != end) {  // where there are many they stand side by side, not on each other
      const double at_x = line.axis.at(*gap);
      const float x = ImPlot::PlotToPixels(at_x, 0.0).x;
      if (at_x >= view.x_low && at_x <= view.x_high) draw_icon(list, Icon::warning, {x, at.y + size.y - em(0.7f)}, em(0.9f), theme().bad);
      gap = std::lower_bound(std::next(gap), end, line.axis.step(ImPlot::PixelsToPlot(x + em(0.5f), at.y).x));
    }
  }
}

// The names of the lines beside the title, where no line is hidden by them.
void legend(const PlotTile& tile, float right) {
  for (const PlotLine& line : tile.lines) {
    ImGui::SameLine(0, em(0.7f));
    push_small();
    const float width = ImGui::CalcTextSize(line.label).x;
    ImGui::PopFont();
    if (ImGui::GetCursorPosX() + em(0.8f) + width > right) break;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + ImGui::GetTextLineHeight() * 0.55f;
    ImGui::GetWindowDrawList()->AddCircleFilled({at.x + em(0.27f), middle}, em(0.25f), line.color);
    ImGui::Dummy({em(0.55f), ImGui::GetTextLineHeight()});
    ImGui::SameLine(0, em(0.22f));
    small_beside(line.label, theme().dim);
  }
}

void draw_plot(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) {
  double low = 0, high = 1;
  const bool log_scale = tile.can_log && view.log_scale;
  if (!limits_of(view, tile, log_scale, low, high)) {
    low = 0;
    high = 1;
  }
  const ImPlotFlags flags =
      ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoLegend;
  if (!ImPlot::BeginPlot(tile.id, size, flags)) return;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  double x_low = view.x_low, x_high = view.x_high;
  ImPlot::SetupAxisLinks(ImAxis_X1, &x_low, &x_high);
  ImPlot::SetupAxisFormat(ImAxis_X1, view.grain < 1 ? value_label : step_label);
  ImPlot::SetupAxisFormat(ImAxis_Y1, value_label);
  if (log_scale) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  ImPlot::SetupAxisLimits(ImAxis_Y1, low, high, ImPlotCond_Always);
  ImPlot::SetupFinish();
  const int columns = std::max(16, static_cast<int>(ImPlot::GetPlotSize().x));
  const float weight = std::max(1.0f, em(0.11f));
  for (const PlotLine& line : tile.lines) {  // behind all others
    if (!line.curve || line.curve->empty() || !line.smooth || view.smoothing <= 0) continue;
    PlotLine raw = line;
    raw.dashed = false;
    draw_line(view, *line.curve, raw, with_alpha(line.color, line.raw_alpha), std::max(1.0f, weight * 0.6f), columns, "##raw");
  }
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    if (line.smooth && view.smoothing > 0) {
      draw_line(view, view.smooth(*line.curve), line, line.color, weight, columns, line.label);
    } else {
      draw_line(view, *line.curve, line, line.color, weight, columns, line.label);
    }
  }
  ImPlot::PushPlotClipRect();
  if (tile.target && !tile.target->empty()) {
    tile.target->envelope(view.x_low, view.x_high, columns, g_x, g_y);
    std::vector<ImVec2> points;
    for (size_t i = 0; i < g_x.size(); ++i)
      if (g_y[i] > 0) points.push_back(ImPlot::PlotToPixels(g_x[i], g_y[i] * tile.target_scale));  // 0: none in force
    draw_dashed(ImPlot::GetPlotDrawList(), points, theme().dim, weight * 0.8f);
  }
  if (tile.target_value > 0) {
    const ImVec2 at = ImPlot::GetPlotPos(), box = ImPlot::GetPlotSize();
    const float y = ImPlot::PlotToPixels(view.x_low, tile.target_value).y;
    draw_dashed(ImPlot::GetPlotDrawList(), {{at.x, y}, {at.x + box.x, y}}, theme().dim, weight * 0.8f);
  }
  draw_marks(view, marks);
  draw_bad_values(view, tile);
  draw_cursor(view, tile);
  ImPlot::PopPlotClipRect();
  ImPlot::EndPlot();
  // The user moved this plot: all others move along, and the head is let go.
  if (x_low != view.x_low || x_high != view.x_high) {
    view.x_low = std::max(x_low, -0.1 * (x_high - x_low));
    view.x_high = std::max(x_high, view.x_low + 4 * view.grain);
    view.follow = false;
  }
}

}  // namespace

void follow_head(PlotView& view, double last_step) {
  view.last_step = last_step;
  if (!view.follow) return;
  view.x_low = 0;
  view.x_high = std::max(20 * view.grain, last_step * 1.015);  // room for the dot of the newest point
}

Figure figure_of(PlotView& view, const PlotTile& tile, std::string note) {
  Figure figure{.title = tile.title, .note = std::move(note), .unit = tile.unit, .x_title = view.unit};
  figure.x_low = view.x_low;
  figure.x_high = view.x_high;
  figure.log_scale = tile.can_log && view.log_scale;
  figure.from_zero = tile.from_zero;
  const auto add = [&](const Curve& curve, const PlotLine& line, std::string label, ImU32 color) {
    FigureLine out{.label = std::move(label), .color = color, .x = curve.x(), .y = curve.y()};
    for (double& x : out.x) x = line.axis.at(x);
    for (double& y : out.y) y *= line.scale;
    out.dashed = line.dashed;
    figure.lines.push_back(std::move(out));
  };
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    add(*line.curve, line, line.label, smooth ? with_alpha(line.color, line.raw_alpha) : line.color);
    if (line.hold && view.last_step > figure.lines.back().x.back()) {
      figure.lines.back().x.push_back(view.last_step);
      figure.lines.back().y.push_back(figure.lines.back().y.back());
    }
    if (!smooth) continue;
    Smoothed& smoothed = view.smoothed[line.curve];
    smoothed.update(*line.curve, view.smoothing);
    add(smoothed.curve(), line, std::string(line.label) + " smoothed " + significant(view.smoothing, 3), line.color);
  }
  if (tile.target && !tile.target->empty()) {
    FigureLine target{.label = "target", .color = theme().dim, .dashed = true};
    for (size_t i = 0; i < tile.target->size(); ++i)
      if (tile.target->y()[i] > 0) {  // 0: none in force
        target.x.push_back(tile.target->x()[i]);
        target.y.push_back(tile.target->y()[i] * tile.target_scale);
      }
    figure.lines.push_back(std::move(target));
  }
  if (tile.target_value > 0)
    figure.lines.push_back({.label = "target",
                            .color = theme().dim,
                            .x = {view.x_low, view.x_high},
                            .y = {tile.target_value, tile.target_value},
                            .dashed = true,
                            .no_data = true});
  return figure;
}

void plot_lines(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) { draw_plot(view, tile, marks, size); }

void plot_tile(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) {
  if (begin_card(tile.id, size, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse)) {
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    card_title(tile.title, tile.help);
    if (tile.legend && tile.lines.size() > 1)
      legend(tile, right - (tile.value.empty() ? 0 : ImGui::CalcTextSize(tile.value.c_str()).x * 1.2f + em(1)));
    if (!tile.value.empty()) {
      ImGui::SameLine();
      push_numbers(1.1f);
      text_right(tile.value, right, theme().text);
      ImGui::PopFont();
    }
    const bool any =
        std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); });
    push_small();
    if (!tile.note.empty()) text_fit(tile.note, ImGui::GetContentRegionAvail().x, theme().warning);
    if (any) draw_plot(view, tile, marks, ImGui::GetContentRegionAvail());
    ImGui::PopFont();
    if (!any) empty_state(Icon::chart, "No points yet", tile.empty.c_str());
  }
  end_card();
}

}  // namespace comera::studio
