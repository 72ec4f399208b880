#include "app/studio/parts/plots.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/plot_over.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {

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

const Curve& PlotView::per_second(const Curve& ms) {
  PerSecond& of = rates[&ms];
  to_smooth -= of.update(ms, to_smooth);
  smoothing_left = smoothing_left || of.curve().size() < ms.size();
  return of.curve();
}

void PlotView::forget_curves() {
  smoothed.clear();
  rates.clear();
}

namespace {

// Names of the lines next to the title, as many as fit.
void legend(const PlotTile& tile, float right) {
  std::vector<const PlotLine*> named;
  for (const PlotLine& line : tile.lines)
    if (line.named) named.push_back(&line);
  std::stable_partition(named.begin(), named.end(), [](const PlotLine* line) { return line->fits; });  // lines behind come last
  for (const PlotLine* of : named) {
    const PlotLine& line = *of;
    ImGui::SameLine(0, em(0.7f));
    push_small();
    const float width = ImGui::CalcTextSize(line.label).x;
    ImGui::PopFont();
    if (ImGui::GetCursorPosX() + em(0.8f) + width > right) break;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + ImGui::GetTextLineHeight() * 0.55f;
    const Marker sign = line.marker == Marker::none ? Marker::circle : line.marker;
    draw_marker(ImGui::GetWindowDrawList(), sign, {at.x + em(0.27f), middle}, em(0.25f), line.color);
    ImGui::Dummy({em(0.55f), ImGui::GetTextLineHeight()});
    ImGui::SameLine(0, em(0.22f));
    small_beside(line.label, theme().dim);
  }
}

void draw_plot(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size) {
  if (is_over_metric(tile)) return draw_over(view, tile, size);
  PlotLook& look = view.looks[tile.id];
  double low = 0, high = 1;
  const bool log_scale = log_scale_of(view, tile);
  if (!y_range_of(view, tile, log_scale, low, high)) {
    low = log_scale ? 0.1 : 0;
    high = 1;
  }
  if (look.locked && !(log_scale && look.low <= 0)) {
    low = look.low;
    high = look.high;
  }
  look.shown_low = low;
  look.shown_high = high;
  if (!ImPlot::BeginPlot(tile.id, size, kPlotFlags)) return;
  // The wheel zooms x, with Shift y; dragging with the right button zooms into a box.
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
  // Only short units fit next to a number; the title shows the others.
  static const std::map<std::string, const char*> kShort = {{"%", " %"}, {"ms", " ms"}, {"MiB", " MiB"}, {"it/s", " it/s"}};
  const auto unit = kShort.find(tile.unit);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label, unit == kShort.end() ? nullptr : const_cast<char*>(unit->second));
  setup_y_ticks(low, high, size.y, log_scale);
  double y_low = low, y_high = high;
  ImPlot::SetupAxisLinks(ImAxis_Y1, &y_low, &y_high);
  ImPlot::SetupFinish();
  const int columns = std::max(16, static_cast<int>(ImPlot::GetPlotSize().x));
  const float weight = line_weight(view);
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
  // The user moved this plot: all plots follow it and stop following the newest step.
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

// Menu with the settings of a single plot.
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
  if (ImGui::MenuItem("Use common settings###as-all", nullptr, false, own)) look = {};
  ImGui::Separator();
  const double at = view.menu_at >= 0 ? view.menu_at : view.last_step;
  const std::string values = values_text(tile, at);
  if (ImGui::MenuItem(("Copy value at " + place_text(view, at) + "###copy-value").c_str(), nullptr, false, !values.empty()))
    ImGui::SetClipboardText(values.c_str());
  name_item("copy-value");
  if (ImGui::MenuItem("Copy data as CSV###copy")) ImGui::SetClipboardText(figure_csv(figure_of(view, tile, "")).c_str());
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

std::string values_text(const PlotTile& tile, double step) {
  std::string out;
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty() || line.axis.step(step) > line.end) continue;
    const double value = line.curve->at(line.axis.step(step)) * line.scale;
    if (!std::isfinite(value)) continue;
    if (tile.lines.size() > 1) out += (out.empty() ? "" : "\n") + std::string(line.label) + "\t";
    out += csv_number(value);
  }
  return out;
}

void fit_plots(PlotView& view) {
  view.follow = true;
  for (auto& [id, look] : view.looks) {
    look.locked = false;
    look.zoom = {};
  }
}

void plot_toolbar(PlotView& view) {
  static constexpr const char* kKinds[] = {"Exponential", "Mean", "Gaussian"};
  const float gap = em(0.8f);
  beside_or_below(em(16), gap);
  ImGui::SetNextItemWidth(em(8));
  if (ImGui::BeginCombo("##smoothing-kind", kKinds[static_cast<size_t>(view.smoothing_kind)])) {
    for (int i = 0; i < kSmoothings; ++i)
      if (ImGui::Selectable(kKinds[i], i == static_cast<int>(view.smoothing_kind))) view.smoothing_kind = static_cast<Smoothing>(i);
    ImGui::EndCombo();
  }
  tooltip(
      "Smoothing: bias-corrected exponential average, mean of the last points, or Gaussian over both sides. The raw curve stays visible "
      "behind it.");
  ImGui::SameLine(0, em(0.3f));
  ImGui::SetNextItemWidth(em(7));
  float smoothing = view.smoothing;
  if (ImGui::SliderFloat("##smoothing", &smoothing, 0, 0.999f, "%.3f", ImGuiSliderFlags_AlwaysClamp) && std::isfinite(smoothing))
    view.smoothing = smoothing;
  name_item("smoothing");
  tooltip(view.smoothing <= 0
              ? "Smoothing weight. 0: raw curves."
              : ("Smoothing weight: like the mean of " + thousands(static_cast<double>(points_of(view.smoothing))) + " points.").c_str());
  beside_or_below(checkbox_width("Log"), gap);
  ImGui::Checkbox("Log", &view.log_scale);
  tooltip("Logarithmic y axis for losses. The menu of a plot can override it.");
  beside_or_below(checkbox_width("Outliers"), gap);
  ImGui::Checkbox("Outliers", &view.outliers);
  tooltip("Off: the y axis ignores the highest and lowest percent of the values; the plot shows how many are hidden.");
  beside_or_below(checkbox_width("Lock y"), gap);
  bool locked =
      !view.looks.empty() && std::all_of(view.looks.begin(), view.looks.end(), [](const auto& look) { return look.second.locked; });
  if (ImGui::Checkbox("Lock y", &locked))
    for (auto& [id, look] : view.looks) {
      look.locked = locked;
      look.low = look.shown_low;
      look.high = look.shown_high;
    }
  tooltip("Keeps the y axes fixed. For one plot: Shift+wheel, or drag a box with the right button.");
  beside_or_below(button_width("Fit", {}), gap);
  const bool moved = !view.follow || std::any_of(view.looks.begin(), view.looks.end(), [](const auto& look) { return look.second.locked; });
  if (button("Fit",
             {.enabled = moved, .tooltip = "Shows the whole curves; or double-click a plot", .why_not = "The whole curves are shown"}))
    fit_plots(view);
  if (!view.follow) {
    beside_or_below(button_width("Follow", {.icon = Icon::step}), gap);
    if (button("Follow", {.icon = Icon::step, .primary = true, .tooltip = "Shows the whole run and follows its newest step"}))
      view.follow = true;
  }
}

float line_weight(const PlotView& view) { return std::max(1.0f, em(0.11f) * view.line_width); }

void follow_head(PlotView& view, double last_step) {
  view.last_step = last_step;
  if (!view.follow) return;
  view.x_low = 0;
  view.x_high = std::max(20 * view.grain, std::max(last_step, view.furthest) * 1.015);  // margin for the dot at the newest point
}

Figure figure_of(PlotView& view, const PlotTile& tile, std::string note) {
  Figure figure{.title = tile.title, .note = std::move(note), .unit = tile.unit, .x_title = view.axis_unit, .line_width = view.line_width};
  if (is_over_metric(tile)) {
    figure.log_scale = log_scale_of(view, tile);
    add_over(view, tile, figure);
    return figure;
  }
  figure.x_low = view.axis.along(view.x_low);
  figure.x_high = view.axis.along(view.x_high);
  figure.log_scale = log_scale_of(view, tile);
  figure.from_zero = tile.from_zero;
  const auto add = [&](const Curve& curve, const PlotLine& line, std::string label, ImU32 color, bool behind = false) {
    FigureLine out{.label = std::move(label), .color = color, .x = curve.x().all(), .y = curve.y()};
    to_axis(view, line, out.x, out.y);
    out.dashed = line.dashed;
    if (view.markers && !behind) out.marker = line.marker;
    figure.lines.push_back(std::move(out));
  };
  for (const PlotLine& line : tile.lines)
    if (line.low && line.high && !line.low->empty()) {
      FigureLine band{.label = std::string(line.label) + ", " + line.band, .color = with_alpha(line.color, 0.16f)};
      band.x = line.high->x().all();
      band.y = line.high->y();
      band.base = line.low->y();
      band.band = true;
      to_axis(view, line, band.x, band.y);
      for (double& y : band.base) y *= line.scale;
      figure.lines.push_back(std::move(band));
    }
  for (const PlotLine& line : tile.lines) {
    if (!line.curve || line.curve->empty()) continue;
    const bool smooth = line.smooth && view.smoothing > 0;
    const std::string label = line.label + (*line.middle ? ", " + std::string(line.middle) : "");
    add(*line.curve, line, label, smooth ? with_alpha(line.color, line.raw_alpha) : line.color, smooth);
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
      if (tile.target->y()[i] > 0) {  // 0: no target
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
    card_title(tile.title, tile.help, right - ImGui::GetCursorPosX());
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
    const bool open = button("###more", {.icon = Icon::more, .tooltip = "Menu of this plot (right click)", .size = {more, 0}});
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
    if (tile.corner) tile.corner();
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
