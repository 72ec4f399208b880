#include "app/studio/parts/plots.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_over.h"

namespace comera::studio {
namespace {

// Points of one line, kept so that a frame allocates nothing; one thread draws.
std::vector<double> g_x, g_y;
std::vector<ImVec2> g_pixels;

// There are no half steps.
int step_label(double value, char* text, int size, void*) {
  if (std::abs(value - std::round(value)) > 1e-6) return std::snprintf(text, static_cast<size_t>(size), " ");
  return axis_label(value, text, size, nullptr);
}

}  // namespace

int axis_label(double value, char* text, int size, void* unit) {
  const char* behind = unit ? static_cast<const char*>(unit) : "";
  if (*behind == '%') behind = "";  // ImPlot's own format, where no unit was given
  return std::snprintf(text, static_cast<size_t>(size), "%s%s", axis_number(value).c_str(), behind);
}

void setup_y_ticks(double low, double high, float height, bool log_scale) {
  const auto lines = static_cast<size_t>(std::clamp((height - 2.2f * ImGui::GetFontSize()) / (1.7f * ImGui::GetFontSize()), 1.0f, 8.0f));
  std::vector<double> at = ticks(low, high, static_cast<int>(lines), log_scale);
  if (at.size() > lines && log_scale) {  // of 1, 2, 5, 10 the powers of ten, then every second one, third one
    std::vector<double> powers;
    for (const double value : at)
      if (const double power = std::log10(value); std::abs(power - std::round(power)) < 1e-9) powers.push_back(value);
    if (powers.size() > 1) at = std::move(powers);
    const size_t stride = (at.size() + lines - 1) / lines;
    for (size_t i = 0; i * stride < at.size(); ++i) at[i] = at[i * stride];
    at.resize((at.size() + stride - 1) / stride);
  }
  if (!at.empty()) ImPlot::SetupAxisTicks(ImAxis_Y1, at.data(), static_cast<int>(at.size()));
}

void PlotView::begin_frame() {
  to_smooth = kSmoothedAFrame;
  smoothing_left = false;
}

const Curve& PlotView::smooth(const Curve& curve) {
  Smoothed& of = smoothed[&curve];
  to_smooth -= of.update(curve, smoothing, smoothing_kind, to_smooth);
  smoothing_left = smoothing_left || !of.done();
  return of.curve();
}

void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight) {
  for (const auto& [from, to] : dashes({points.begin(), points.end()}, em(0.4f), em(0.3f)))
    list->AddLine({from.x, from.y}, {to.x, to.y}, color, weight);
}

namespace {

// On the screen's axis.
double place(const PlotView& view, const PlotLine& line, double step) { return view.axis.at(line.axis.at(step)); }

void to_axis(const PlotView& view, const PlotLine& line, std::vector<double>& x, std::vector<double>& y) {
  for (double& at : x) at = place(view, line, at);
  for (double& value : y) value *= line.scale;
}

void draw_lone_points(ImU32 color, float size) {
  ImPlot::PushPlotClipRect();
  for (const size_t i : lone_points(g_y)) ImPlot::GetPlotDrawList()->AddCircleFilled(ImPlot::PlotToPixels(g_x[i], g_y[i]), size, color);
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
  const bool markers = line.points && static_cast<float>(count) * em(1.3f) < static_cast<float>(columns);
  if (markers) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = weight * 1.6f;
    spec.MarkerFillColor = vec(color);
    spec.MarkerLineColor = vec(color);
  }
  if (!line.dashed) {
    ImPlot::PlotLine(label, g_x.data(), g_y.data(), count, spec);
    if (!markers) draw_lone_points(color, weight * 1.6f);
    return;
  }
  if (markers)
    ImPlot::PlotScatter(label, g_x.data(), g_y.data(), count, spec);
  else
    draw_lone_points(color, weight * 1.6f);
  ImPlot::PushPlotClipRect();
  for (size_t i = 0; i < g_x.size(); ++i) {  // what is not finite parts it
    g_pixels.clear();
    for (; i < g_x.size() && std::isfinite(g_y[i]); ++i) g_pixels.push_back(ImPlot::PlotToPixels(g_x[i], g_y[i]));
    draw_dashed(ImPlot::GetPlotDrawList(), g_pixels, color, weight);
  }
  ImPlot::PopPlotClipRect();
}

// Between the lowest and the highest of each few pixels.
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
  const bool outliers = outliers_of(view, tile);
  for (const PlotLine& line : tile.fitted ? *tile.fitted : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    for (const Curve* curve : {line.curve, line.low, line.high}) {
      if (!curve) continue;
      if (!outliers)
        widen_most(*curve, view, line.axis, line.scale, low, high);
      else
        widen(*curve, view, line.axis, line.scale, low, high);
    }
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
    if (!(high > 0)) high = 1;
    if (!(low > 0)) low = high * 1e-4;  // a logarithm has no place for 0
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
    const float x = std::round(ImPlot::PlotToPixels(view.axis.at(step), 0.0).x);
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

// A line across the plot at a place of the shared range.
void upright(const StepAxis& axis, double at_x, ImU32 color, float weight) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float x = std::round(ImPlot::PlotToPixels(axis.along(at_x), 0.0).x);
  ImPlot::GetPlotDrawList()->AddLine({x, at.y}, {x, at.y + size.y}, color, std::max(1.0f, weight));
}

}  // namespace

void draw_timeline_marks(const PlotView& view, const StepAxis& axis) {
  if (view.selection_low >= 0 && view.selection_high >= view.x_low && view.selection_low <= view.x_high) {
    const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
    const auto x = [&](double step) { return std::clamp(ImPlot::PlotToPixels(axis.along(step), 0.0).x, at.x, at.x + size.x); };
    ImPlot::GetPlotDrawList()->AddRectFilled({x(view.selection_low), at.y}, {x(view.selection_high), at.y + size.y}, theme().accent_soft);
  }
  if (view.replay >= view.x_low && view.replay <= view.x_high) upright(axis, view.replay, theme().warning, em(0.1f));
}

namespace {

std::string place_text(const PlotView& view, double at) {
  std::string text = std::string(view.unit) + " " + (view.grain < 1 ? significant(at, 4) : thousands(at));
  if (view.axis.curve && !view.clock) text += ", " + significant(view.axis.along(at), 4) + " " + view.axis_unit;
  return text;
}

// The step under the mouse, in every plot, with the values there.
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
    if (!line.curve || line.curve->empty()) continue;
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
    while (gap != end) {  // where there are many they stand side by side, not on each other
      const float x = ImPlot::PlotToPixels(place(view, line, *gap), 0.0).x;
      draw_icon(list, Icon::warning, {x, at.y + size.y - em(0.7f)}, em(0.9f), theme().bad);
      const double beside = view.axis.step_along(ImPlot::PixelsToPlot(x + em(0.5f), at.y).x);
      gap = std::lower_bound(std::next(gap), end, line.axis.step(beside));
    }
  }
}

// The size target, and faintly what it was before it was changed last.
void draw_target(const PlotView& view, const PlotTile& tile, int columns, float weight) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 at = ImPlot::GetPlotPos(), box = ImPlot::GetPlotSize();
  if (tile.target && !tile.target->empty()) {
    tile.target->envelope(view.x_low, view.x_high, columns, g_x, g_y);
    std::vector<ImVec2> points;
    for (size_t i = 0; i < g_x.size(); ++i)
      if (g_y[i] > 0) points.push_back(ImPlot::PlotToPixels(view.axis.at(g_x[i]), g_y[i] * tile.target_scale));  // 0: none in force
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

// How many points the y axis leaves out.
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

void draw_lines(PlotView& view, const PlotTile& tile, int columns, float weight) {
  for (const PlotLine& line : tile.lines)
    if (line.low && line.high && !line.low->empty()) draw_band(view, line, columns);
  for (const PlotLine& line : tile.lines) {  // behind all others
    if (!line.curve || line.curve->empty() || !line.smooth || view.smoothing <= 0) continue;
    PlotLine raw = line;
    raw.dashed = false;
    draw_line(view, *line.curve, raw, with_alpha(line.color, line.raw_alpha), std::max(1.0f, weight * 0.6f * line.weight), columns,
              "##raw");
  }
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    draw_line(view, smooth ? view.smooth(*line.curve) : *line.curve, line, line.color, weight * line.weight, columns, line.label);
  }
}

// On the line through its points; NaN beyond its ends.
double on_line(const Curve& curve, double step) {
  const auto after = static_cast<size_t>(std::upper_bound(curve.x().begin(), curve.x().end(), step) - curve.x().begin());
  if (after == 0 || (after == curve.size() && step > curve.x().back())) return NAN;
  if (after == curve.size()) return curve.last();
  const double x = curve.x()[after - 1], y = curve.y()[after - 1];
  return y + (curve.y()[after] - y) * (step - x) / (curve.x()[after] - x);
}

// Whose line is under the mouse.
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

void draw_plot(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) {
  if (is_over_metric(tile)) return draw_over(view, tile, size);
  PlotLook& look = view.looks[tile.id];
  double low = 0, high = 1;
  const bool log_scale = log_scale_of(view, tile);
  if (!limits_of(view, tile, log_scale, low, high)) {
    low = log_scale ? 0.1 : 0;
    high = 1;
  }
  if (look.locked && !(log_scale && look.low <= 0)) {
    low = look.low;
    high = look.high;
  }
  look.shown_low = low;
  look.shown_high = high;
  if (!ImPlot::BeginPlot(tile.id, size, ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend)) return;
  // Scrolling zooms x, with Shift y; dragging with the right button zooms into a box.
  const ImGuiIO& io = ImGui::GetIO();
  const bool move_y = look.locked || io.KeyShift || io.MouseDown[1] || io.MouseReleased[1];
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight | (io.KeyShift ? ImPlotAxisFlags_Lock : 0),
                    ImPlotAxisFlags_NoHighlight | (move_y ? 0 : ImPlotAxisFlags_Lock));
  double x_low = view.axis.along(view.x_low), x_high = view.axis.along(view.x_high);
  if (!(x_high > x_low)) x_high = x_low + 1;
  const double was_low = x_low, was_high = x_high;
  if (view.clock) {
    ImPlot::GetStyle().UseLocalTime = true;
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Time);
  } else {
    ImPlot::SetupAxisFormat(ImAxis_X1, view.grain < 1 || view.axis.curve ? axis_label : step_label);
  }
  ImPlot::SetupAxisLinks(ImAxis_X1, &x_low, &x_high);
  if (log_scale) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  // Of the unit what has room beside a number: the rest stands in the title.
  static const std::map<std::string, const char*> kShort = {{"%", " %"}, {"ms", " ms"}, {"MiB", " MiB"}};
  const auto unit = kShort.find(tile.unit);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label, unit == kShort.end() ? nullptr : const_cast<char*>(unit->second));
  setup_y_ticks(low, high, size.y, log_scale);
  double y_low = low, y_high = high;
  ImPlot::SetupAxisLinks(ImAxis_Y1, &y_low, &y_high);
  ImPlot::SetupFinish();
  const int columns = std::max(16, static_cast<int>(ImPlot::GetPlotSize().x));
  const float weight = std::max(1.0f, em(0.11f));
  draw_lines(view, tile, columns, weight);
  ImPlot::PushPlotClipRect();
  draw_target(view, tile, columns, weight);
  draw_marks(view, marks);
  draw_bad_values(view, tile);
  if (look.locked || !outliers_of(view, tile)) draw_hidden_count(view, tile, low, high);
  draw_cursor(view, tile);
  find_hovered_line(view, tile);
  ImPlot::PopPlotClipRect();
  const bool hovered = ImPlot::IsPlotHovered();
  ImPlot::EndPlot();
  if (hovered && ImGui::IsMouseDoubleClicked(0)) {
    view.follow = true;
    look.locked = false;
    return;
  }
  // The user moved this plot: all others move along, and the head is let go.
  if (x_low != was_low || x_high != was_high) {
    const double from = view.axis.step_along(x_low), to = view.axis.step_along(x_high);
    view.x_low = std::max(from, -0.1 * (to - from));
    view.x_high = std::max(to, view.x_low + 4 * view.grain);
    view.follow = false;
  }
  if (move_y && (y_low != low || y_high != high) && y_high > y_low) {
    look.locked = true;
    look.low = y_low;
    look.high = y_high;
  }
}

// What one plot may have of its own.
void plot_menu(PlotView& view, const PlotTile& tile) {
  PlotLook& look = view.looks[tile.id];
  if (ImGui::MenuItem("Logarithmic###log", nullptr, log_scale_of(view, tile))) look.log_scale = !log_scale_of(view, tile);
  if (ImGui::MenuItem("Outliers###outliers", nullptr, outliers_of(view, tile))) look.outliers = !outliers_of(view, tile);
  if (ImGui::MenuItem("Lock y###lock", nullptr, look.locked)) {
    look.locked = !look.locked;
    look.low = look.shown_low;
    look.high = look.shown_high;
  }
  if (ImGui::MenuItem("Fit###fit", "double click")) {
    view.follow = true;
    look.locked = false;
  }
  const bool own = look.log_scale || look.outliers || look.locked;
  if (ImGui::MenuItem("As all plots###as-all", nullptr, false, own)) look = {};
  ImGui::Separator();
  const double at = view.menu_at >= 0 ? view.menu_at : view.last_step;
  const std::string values = values_text(tile, at);
  if (ImGui::MenuItem(("Copy value at " + place_text(view, at) + "###copy-value").c_str(), nullptr, false, !values.empty()))
    ImGui::SetClipboardText(values.c_str());
  name_item("copy-value");
  if (ImGui::MenuItem("Copy its numbers as CSV###copy")) ImGui::SetClipboardText(figure_csv(figure_of(view, tile, "")).c_str());
  if (tile.menu) tile.menu();
}

}  // namespace

bool log_scale_of(const PlotView& view, const PlotTile& tile) {
  const auto look = view.looks.find(tile.id);
  return look != view.looks.end() && look->second.log_scale ? *look->second.log_scale : tile.can_log && view.log_scale;
}

bool outliers_of(const PlotView& view, const PlotTile& tile) {
  const auto look = view.looks.find(tile.id);
  return look != view.looks.end() && look->second.outliers ? *look->second.outliers : view.outliers;
}

const Curve& smoothed_of(PlotView& view, const Curve& curve) {
  Smoothed& smoothed = view.smoothed[&curve];
  smoothed.update(curve, view.smoothing, view.smoothing_kind);
  return smoothed.curve();
}

std::vector<size_t> lone_points(const std::vector<double>& y) {
  std::vector<size_t> out;
  for (size_t i = 0; i < y.size(); ++i)
    if (std::isfinite(y[i]) && (i == 0 || !std::isfinite(y[i - 1])) && (i + 1 == y.size() || !std::isfinite(y[i + 1]))) out.push_back(i);
  return out;
}

std::string values_text(const PlotTile& tile, double step) {
  std::string out;
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const double value = line.curve->at(line.axis.step(step)) * line.scale;
    if (!std::isfinite(value)) continue;
    if (tile.lines.size() > 1) out += (out.empty() ? "" : "\n") + std::string(line.label) + "\t";
    out += csv_number(value);
  }
  return out;
}

void fit_plots(PlotView& view) {
  view.follow = true;
  for (auto& [id, look] : view.looks) look.locked = false;
}

void plot_toolbar(PlotView& view) {
  static constexpr const char* kKinds[] = {"Exponential", "Mean", "Gaussian"};
  const auto next = [](float width) {  // on this line, or on the next one
    ImGui::SameLine(0, em(0.8f));
    if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
  };
  next(em(16));
  ImGui::SetNextItemWidth(em(8));
  if (ImGui::BeginCombo("##smoothing-kind", kKinds[static_cast<size_t>(view.smoothing_kind)])) {
    for (int i = 0; i < kSmoothings; ++i)
      if (ImGui::Selectable(kKinds[i], i == static_cast<int>(view.smoothing_kind))) view.smoothing_kind = static_cast<Smoothing>(i);
    ImGui::EndCombo();
  }
  tooltip(
      "Smoothing: exponential average without the bias of its start, mean of the last points, or a Gaussian of the points on both sides. "
      "The raw curve stays visible behind it.");
  ImGui::SameLine(0, em(0.3f));
  ImGui::SetNextItemWidth(em(7));
  ImGui::SliderFloat("##smoothing", &view.smoothing, 0, 0.999f, "%.3f", ImGuiSliderFlags_AlwaysClamp);
  tooltip(view.smoothing <= 0
              ? "Weight of the past. 0: the curves as they are."
              : ("Weight of the past: as the mean of " + thousands(static_cast<double>(points_of(view.smoothing))) + " points.").c_str());
  next(em(3.6f));
  ImGui::Checkbox("Log", &view.log_scale);
  tooltip("Losses on a logarithmic axis. A plot's own menu can differ.");
  next(em(6));
  ImGui::Checkbox("Outliers", &view.outliers);
  tooltip("Off: the highest and the lowest percent of the values do not stretch the axis; how many are hidden stands in the plot.");
  next(em(5.4f));
  bool locked =
      !view.looks.empty() && std::all_of(view.looks.begin(), view.looks.end(), [](const auto& look) { return look.second.locked; });
  if (ImGui::Checkbox("Lock y", &locked))
    for (auto& [id, look] : view.looks) {
      look.locked = locked;
      look.low = look.shown_low;
      look.high = look.shown_high;
    }
  tooltip("The y axes stay as they are now. Shift with the wheel, or a box with the right button, does it for one plot.");
  next(em(3.4f));
  const bool moved = !view.follow || std::any_of(view.looks.begin(), view.looks.end(), [](const auto& look) { return look.second.locked; });
  if (button("Fit", {.enabled = moved, .tooltip = "Show everything again: a double click in a plot", .why_not = "Everything is shown"}))
    fit_plots(view);
  if (!view.follow) {
    next(em(5));
    if (button("Follow", {.icon = Icon::step, .primary = true, .tooltip = "Show the whole run again, with its newest step"}))
      view.follow = true;
  }
}

void follow_head(PlotView& view, double last_step) {
  view.last_step = last_step;
  if (!view.follow) return;
  view.x_low = 0;
  view.x_high = std::max(20 * view.grain, last_step * 1.015);  // room for the dot of the newest point
}

Figure figure_of(PlotView& view, const PlotTile& tile, std::string note) {
  Figure figure{.title = tile.title, .note = std::move(note), .unit = tile.unit, .x_title = view.axis_unit};
  if (is_over_metric(tile)) {
    figure.log_scale = log_scale_of(view, tile);
    add_over(view, tile, figure);
    return figure;
  }
  figure.x_low = view.axis.along(view.x_low);
  figure.x_high = view.axis.along(view.x_high);
  figure.log_scale = log_scale_of(view, tile);
  figure.from_zero = tile.from_zero;
  const auto add = [&](const Curve& curve, const PlotLine& line, std::string label, ImU32 color) {
    FigureLine out{.label = std::move(label), .color = color, .x = curve.x().all(), .y = curve.y()};
    to_axis(view, line, out.x, out.y);
    out.dashed = line.dashed;
    figure.lines.push_back(std::move(out));
  };
  for (const PlotLine& line : tile.lines)
    if (line.low && line.high && !line.low->empty()) {
      FigureLine band{.label = std::string(line.label) + " " + line.band, .color = with_alpha(line.color, 0.16f)};
      band.x = line.high->x().all();
      band.y = line.high->y();
      band.base = line.low->y();
      to_axis(view, line, band.x, band.y);
      for (double& y : band.base) y *= line.scale;
      figure.lines.push_back(std::move(band));
    }
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    add(*line.curve, line, line.label, smooth ? with_alpha(line.color, line.raw_alpha) : line.color);
    if (line.hold && view.axis.at(view.last_step) > figure.lines.back().x.back()) {
      figure.lines.back().x.push_back(view.axis.at(view.last_step));
      figure.lines.back().y.push_back(figure.lines.back().y.back());
    }
    if (!smooth) continue;
    add(smoothed_of(view, *line.curve), line, std::string(line.label) + " smoothed " + significant(view.smoothing, 3), line.color);
  }
  if (tile.target && !tile.target->empty()) {
    FigureLine target{.label = "target", .color = theme().dim, .dashed = true};
    for (size_t i = 0; i < tile.target->size(); ++i)
      if (tile.target->y()[i] > 0) {  // 0: none in force
        target.x.push_back(view.axis.at(tile.target->x()[i]));
        target.y.push_back(tile.target->y()[i] * tile.target_scale);
      }
    figure.lines.push_back(std::move(target));
  }
  if (tile.target_value > 0)
    figure.lines.push_back({.label = "target",
                            .color = theme().dim,
                            .x = {figure.x_low, figure.x_high},
                            .y = {tile.target_value, tile.target_value},
                            .dashed = true,
                            .no_data = true});
  return figure;
}

void plot_lines(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) { draw_plot(view, tile, marks, size); }

void plot_tile(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) {
  if (begin_card(tile.id, size, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse)) {
    const float more = em(1.7f), right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - more;
    card_title(tile.title, tile.help);
    if (tile.legend && tile.lines.size() > 1)
      legend(tile, right - (tile.value.empty() ? 0 : ImGui::CalcTextSize(tile.value.c_str()).x * 1.2f + em(1)));
    if (!tile.value.empty()) {
      ImGui::SameLine();
      push_numbers(1.1f);
      if (ImGui::GetCursorPosX() + ImGui::CalcTextSize(tile.value.c_str()).x <= right)
        text_right(tile.value, right - em(0.2f), theme().text);
      ImGui::PopFont();
    }
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
    ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.3f), 0));
    const bool open = button("###more", {.icon = Icon::more, .tooltip = "Of this plot (right click)", .size = {more, 0}});
    ImGui::PopStyleVar();
    ImGui::PopStyleColor(2);
    const bool right_click = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) && ImGui::IsMouseReleased(1) && !mouse_dragged(1);
    if (open || right_click) {
      view.menu_at = open ? -1 : view.cursor;
      ImGui::OpenPopup("menu");
    }
    const bool any =
        std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); });
    push_small();
    if (!tile.note.empty()) text_fit(tile.note, ImGui::GetContentRegionAvail().x, theme().warning);
    if (any) draw_plot(view, tile, marks, ImGui::GetContentRegionAvail());
    ImGui::PopFont();
    if (!any) empty_state(Icon::chart, "No points yet", tile.empty.c_str());
    if (ImGui::BeginPopup("menu")) {
      plot_menu(view, tile);
      ImGui::EndPopup();
    }
  }
  end_card();
  if (collects_items()) {
    name_item(std::string("plot:") + tile.id + ":" + std::to_string(tile.lines.size()));
    if (std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); }))
      name_item(std::string("chart:") + tile.id);
  }
}

}  // namespace comera::studio
