// Score against cost: the path of each run through its evaluations, and the Pareto front.
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/format.h"
#include "app/studio/compare/pareto_points.h"
#include "app/studio/compare/placed_names.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

struct Way {
  const ComparedRun* run = nullptr;
  std::vector<ParetoPoint> points;
};

struct Range {
  double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = -1e300;
  void take(double x, double y) {
    x_low = std::min(x_low, x);
    x_high = std::max(x_high, x);
    y_low = std::min(y_low, y);
    y_high = std::max(y_high, y);
  }
};

// Leaves out the first third of each path: bad scores of early steps would flatten the rest.
Range range_of(const std::vector<Way>& ways, const ParetoAxes& axes) {
  Range box;
  for (const Way& way : ways)
    for (size_t i = way.points.size() / 3; i < way.points.size(); ++i) box.take(way.points[i].cost, axes.shown(way.points[i].score));
  const double room = std::max(axes.loss ? box.y_high * 0.002 : 0.2, (box.y_high - box.y_low) * 0.08);
  box.y_low -= room;
  box.y_high += room;
  return box;
}

// Ticks at round numbers of each decade, more of them if there are few decades.
void log_ticks(double low, double high) {
  static std::vector<double> places;  // ImPlot reads them until the end of the plot
  places.clear();
  for (int decade = static_cast<int>(std::floor(std::log10(low))); decade <= static_cast<int>(std::ceil(std::log10(high))); ++decade)
    for (const double digit : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}) {
      if (high / low > 400 && digit != 1 && digit != 2 && digit != 5) continue;
      places.push_back(digit * std::pow(10, decade));
    }
  ImPlot::SetupAxisTicks(ImAxis_X1, places.data(), static_cast<int>(places.size()));
}

// The Pareto front as a staircase, in pixels.
std::vector<ImVec2> front_of(const std::vector<Way>& ways, const ParetoAxes& axes) {
  std::vector<ParetoPoint> all;
  for (const Way& way : ways)
    if (!way.run->faded) all.insert(all.end(), way.points.begin(), way.points.end());
  const std::vector<ParetoPoint> front = pareto_front(std::move(all));
  std::vector<ImVec2> stairs;
  if (front.empty()) return stairs;
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  for (const ParetoPoint& point : front) {
    const ImVec2 pixel = ImPlot::PlotToPixels(point.cost, axes.shown(point.score));
    stairs.emplace_back(pixel.x, !stairs.empty() ? stairs.back().y : axes.loss ? at.y : at.y + size.y);
    stairs.push_back(pixel);
  }
  stairs.emplace_back(std::max(at.x + size.x, stairs.back().x), stairs.back().y);
  return stairs;
}

// Names next to the last points, placed where they cover no name and no line; if that is impossible, on a background.
void draw_names_beside(const Compare& compare, const std::vector<Way>& ways, const ParetoAxes& axes, const std::vector<ImVec2>& stairs) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float line = ImGui::GetTextLineHeight();
  std::vector<PlacedName> names;
  for (const Way& way : ways) {
    const ImVec2 point = ImPlot::PlotToPixels(way.points.back().cost, axes.shown(way.points.back().score));
    names.push_back({point, {ImGui::CalcTextSize(label_of(compare, *way.run).c_str()).x, line}});
  }
  place_names(names, {stairs.begin(), stairs.end()}, {at.x, at.y, at.x + size.x, at.y + size.y}, em(0.7f));
  ImPlot::PushPlotClipRect();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < names.size(); ++i) {
    const PlacedName& name = names[i];
    if (name.place == PlacedName::nowhere) continue;
    if (name.place == PlacedName::on_ground)
      list->AddRectFilled({name.box.x0 - em(0.2f), name.box.y0}, {name.box.x1 + em(0.2f), name.box.y1}, theme().card, em(0.2f));
    list->AddText({name.box.x0, name.box.y0}, ways[i].run->faint() ? theme().dim : theme().text, label_of(compare, *ways[i].run).c_str());
  }
  ImPlot::PopPlotClipRect();
}

void draw_way(const Compare& compare, const Way& way, const ParetoAxes& axes) {
  std::vector<double> x, y;
  for (const ParetoPoint& point : way.points) {
    x.push_back(point.cost);
    y.push_back(axes.shown(point.score));
  }
  const ImU32 color = color_of(*way.run);
  const int count = static_cast<int>(x.size());
  ImPlotSpec line;
  line.LineColor = vec(with_alpha(color, 0.45f));
  line.LineWeight = std::max(1.0f, em(0.08f)) * weight_of(compare, *way.run);
  ImPlot::PlotLine("##way", x.data(), y.data(), count, line);
  ImPlot::PushPlotClipRect();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < x.size(); ++i) {
    const ImVec2 at = ImPlot::PlotToPixels(x[i], y[i]);
    const bool last = i + 1 == x.size();
    draw_marker(list, last ? marker_of(way.run->slot) : Marker::circle, at, em(last ? 0.38f : 0.18f), color);
    if (way.points[i].checkpoint) list->AddCircle(at, em(last ? 0.62f : 0.38f), color, 0, std::max(1.0f, em(0.08f)));
  }
  ImPlot::PopPlotClipRect();
}

void draw_front(const std::vector<ImVec2>& stairs) {
  if (stairs.empty()) return;
  ImPlot::PushPlotClipRect();
  draw_dashed(ImPlot::GetPlotDrawList(), stairs, with_alpha(theme().dim, 0.8f), std::max(1.0f, em(0.09f)));
  ImPlot::PopPlotClipRect();
}

void hover(Compare& compare, const std::vector<Way>& ways, const ParetoAxes& axes, std::vector<Copied>& copied) {
  if (!ImPlot::IsPlotHovered()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const Way* nearest = nullptr;
  const ParetoPoint* point = nullptr;
  float best = em(1) * em(1);
  for (const Way& way : ways)
    for (const ParetoPoint& other : way.points) {
      const ImVec2 at = ImPlot::PlotToPixels(other.cost, axes.shown(other.score));
      const float distance = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
      if (distance >= best) continue;
      best = distance;
      nearest = &way;
      point = &other;
    }
  if (!point) return;
  compare.hovered = nearest->run->wanted;
  const std::string name = label_of(compare, *nearest->run), score = axes.score_text(point->score), cost = text_of(axes.cost, point->cost),
                    step = "step " + grouped(point->step) + (point->checkpoint ? ", checkpoint" : ""),
                    what = axes.loss ? "loss" : "accuracy", of = lower_case(title_of(axes.cost));
  copied = {{"Copy " + what, score}, {"Copy " + of, cost}, {"Copy line", name + "\t" + step + "\t" + score + "\t" + cost}};
  if (!ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(name.c_str());
  text_dim(step);
  ImGui::Text("%s %s", what.c_str(), score.c_str());
  const bool bytes = axes.cost == ParetoCost::size || axes.cost == ParetoCost::peak;
  ImGui::Text("%s %s%s", of.c_str(), cost.c_str(), bytes ? (" = " + megabytes(point->cost * (1 << 20))).c_str() : "");
  ImGui::EndTooltip();
}

void cost_combo(Compare& compare) {
  ImGui::SetNextItemWidth(em(9));
  if (ImGui::BeginCombo("##cost", title_of(compare.pareto_cost))) {
    for (int i = 0; i < kParetoCosts; ++i) {
      const auto cost = static_cast<ParetoCost>(i);
      if (ImGui::Selectable(title_of(cost), cost == compare.pareto_cost)) compare.pareto_cost = cost;
    }
    ImGui::EndCombo();
  }
  tooltip(
      "Whole model: all parameters at the evaluation, without dead ranks. Peak memory: the most bytes that training held. Step time: "
      "the median. Training time: sum of the step times until the evaluation.");
}

}  // namespace

void draw_pareto_tab(Compare& compare) {
  std::vector<Way> ways;
  const ParetoAxes axes = pareto_axes(compare);
  std::string lacking, key = std::string("##pareto") + title_of(axes.cost);
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    Way way{run.get(), pareto_points(*run, axes)};
    if (way.points.empty()) {
      add_name(lacking, label_of(compare, *run));
      continue;
    }
    key += run->wanted;
    ways.push_back(std::move(way));
  }
  push_small();
  ImGui::AlignTextToFramePadding();
  cost_combo(compare);
  ImGui::SameLine(0, em(0.8f));
  ImGui::Checkbox("Log", &compare.pareto_log);
  tooltip("Logarithmic x axis.");
  ImGui::SameLine(0, em(1));
  text_fit("Point: evaluation. Large point: the last one. Ring: checkpoint. Dashed: Pareto front.", ImGui::GetContentRegionAvail().x,
           theme().dim);
  if (!lacking.empty())
    banner(Level::warning,
           std::string("Without ") + (axes.loss ? "loss" : "accuracy") + " or " + lower_case(title_of(axes.cost)) + ": " + lacking);
  if (ways.empty()) {
    ImGui::PopFont();
    empty_state(Icon::chart, "No points yet", "Each evaluation adds a point.");
    return;
  }
  const Range box = range_of(ways, axes);
  const bool log = compare.pareto_log;
  key += log ? "l" : "";
  // Visible range after a zoom (in the last frame), for round tick values.
  double y_low = box.y_low, y_high = box.y_high;
  if (const ImPlotPlot* before = ImPlot::GetPlot(key.c_str()); before && before->Initialized) {
    y_low = before->Axes[ImAxis_Y1].Range.Min;
    y_high = before->Axes[ImAxis_Y1].Range.Max;
  }
  const ImVec2 room = ImGui::GetContentRegionAvail(), space(room.x, std::max(room.y, em(12)));  // a low window scrolls
  std::vector<Copied> copied;                                                                   // facts of the point under the mouse
  if (ImPlot::BeginPlot(key.c_str(), space, kPlotFlags | ImPlotFlags_NoBoxSelect)) {
    const std::string x_title = std::string(title_of(axes.cost)) + ", " + unit_of(axes.cost);
    const char* y_title = axes.score_title();
    const bool high = space.y > ImGui::CalcTextSize(y_title).x;
    ImPlot::SetupAxes(high ? x_title.c_str() : nullptr, high ? y_title : nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    for (const ImAxis axis : {ImAxis_X1, ImAxis_Y1}) ImPlot::SetupAxisFormat(axis, axis_label);
    if (log) {
      ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
      log_ticks(box.x_low / 4, box.x_high * 4);
      ImPlot::SetupAxisLimits(ImAxis_X1, box.x_low / 1.25, box.x_high * 1.25, ImPlotCond_Once);
    } else {
      ImPlot::SetupAxisLimits(ImAxis_X1, 0, box.x_high * 1.06, ImPlotCond_Once);
    }
    ImPlot::SetupAxisLimits(ImAxis_Y1, box.y_low, box.y_high, ImPlotCond_Once);
    setup_y_ticks(y_low, y_high, std::max(em(2), space.y - em(3)));  // leaves room for the labels below the plot
    ImPlot::SetupFinish();
    const std::vector<ImVec2> stairs = front_of(ways, axes);
    draw_front(stairs);
    for (const Way& way : ways) draw_way(compare, way, axes);
    draw_names_beside(compare, ways, axes, stairs);
    hover(compare, ways, axes, copied);
    ImPlot::EndPlot();
    name_item("chart:pareto");
  }
  copy_menu(copied, !copied.empty());
  ImGui::PopFont();
}

namespace {

std::string pareto_title(const ParetoAxes& axes) {
  return std::string(axes.loss ? "Loss" : "Accuracy") + " against " + lower_case(title_of(axes.cost));
}

Chart pareto_chart(Compare& compare) {
  std::vector<Way> ways;
  const ParetoAxes axes = pareto_axes(compare);
  const std::string x_title = std::string(title_of(axes.cost)) + " in " + unit_of(axes.cost);
  std::vector<std::vector<std::string>> table = {
      {"run", "step", lower_case(title_of(axes.cost)) + " (" + unit_of(axes.cost) + ")", axes.loss ? "loss" : "accuracy", "checkpoint"}};
  std::vector<ParetoPoint> all;
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    Way way{run.get(), pareto_points(*run, axes)};
    for (const ParetoPoint& point : way.points)
      table.push_back({label_of(compare, *run), std::to_string(point.step), csv_number(point.cost),
                       csv_number(axes.loss ? -point.score : point.score), point.checkpoint ? "yes" : "no"});
    all.insert(all.end(), way.points.begin(), way.points.end());
    if (!way.points.empty()) ways.push_back(std::move(way));
  }
  constexpr ImVec2 kSize = {900, 480}, kFrom = {64, 84}, kTo = {878, 434};
  Chart chart{"pareto", pareto_title(axes), {}, begin_drawing(kSize, pareto_title(axes), note_of(compare))};
  Drawing& drawing = chart.drawing;
  draw_names(drawing, compare, 63);
  const Range box = range_of(ways, axes);
  const bool log = compare.pareto_log;
  const double x_low = log ? box.x_low / 1.25 : 0, x_high = log ? box.x_high * 1.25 : box.x_high * 1.06;
  const auto place = [&](double cost, double shown) {
    const double x = log ? std::log(cost / x_low) / std::log(x_high / x_low) : (cost - x_low) / (x_high - x_low);
    const double y = (shown - box.y_low) / (box.y_high - box.y_low);
    return ImVec2(static_cast<float>(std::clamp(kFrom.x + (kTo.x - kFrom.x) * x, -1e4, 1e4)),
                  static_cast<float>(std::clamp(kTo.y - (kTo.y - kFrom.y) * y, -1e4, 1e4)));
  };
  for (const double tick : ticks(box.y_low, box.y_high, 6, false)) {
    const float y = place(x_high, tick).y;
    drawing.line({{kFrom.x, y}, {kTo.x, y}}, theme().grid, 1);
    drawing.text({kFrom.x - 8, y}, 12, theme().dim, axis_number(tick), Anchor::right);
  }
  for (const double tick : ticks(x_low, x_high, 8, log)) {
    const float x = place(tick, box.y_low).x;
    drawing.line({{x, kFrom.y}, {x, kTo.y}}, theme().grid, 1);
    drawing.text({x, kTo.y + 13}, 12, theme().dim, axis_number(tick), Anchor::middle);
  }
  drawing.text({(kFrom.x + kTo.x) / 2, kSize.y - 13}, 12, theme().dim,
               x_title + (axes.loss ? ", validation loss" : ", validation accuracy in %") + ". Ring: checkpoint", Anchor::middle);
  drawing.clips.push_back({kFrom.x, kFrom.y, kTo.x, kTo.y});
  std::vector<Point> stairs;
  for (const ParetoPoint& point : pareto_front(std::move(all))) {
    const ImVec2 at = place(point.cost, axes.shown(point.score));
    stairs.emplace_back(at.x, !stairs.empty() ? stairs.back().y : axes.loss ? kFrom.y : kTo.y);
    stairs.push_back(at);
  }
  stairs.emplace_back(kTo.x, stairs.back().y);
  drawing.line(stairs, theme().dim, 1.2f, 0, 5);
  for (const Way& way : ways) {
    std::vector<Point> points;
    const ImU32 color = color_of(*way.run);
    for (const ParetoPoint& point : way.points) points.push_back(place(point.cost, axes.shown(point.score)));
    drawing.line(points, with_alpha(color, 0.45f), 1.2f, 0);
    for (size_t i = 0; i < points.size(); ++i) {
      const bool last = i + 1 == points.size();
      add_marker(drawing, last ? marker_of(way.run->slot) : Marker::circle, points[i], last ? 5.0f : 2.5f, color, 0);
      if (!way.points[i].checkpoint) continue;
      std::vector<Point> ring;
      for (int k = 0; k <= 24; ++k) {
        const float angle = static_cast<float>(k) * 6.2831853f / 24, r = last ? 8.0f : 5.0f;
        ring.emplace_back(points[i].x + r * std::cos(angle), points[i].y + r * std::sin(angle));
      }
      drawing.line(ring, color, 1.2f, 0);
    }
  }
  drawing.line({kFrom, {kFrom.x, kTo.y}, kTo}, theme().dim, 1);
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> pareto_charts(Compare& compare) {
  const ParetoAxes axes = pareto_axes(compare);
  if (std::none_of(compare.runs.begin(), compare.runs.end(), [&](const auto& run) { return !pareto_points(*run, axes).empty(); }))
    return {};
  return {{"pareto", pareto_title(axes), [&compare] { return pareto_chart(compare); }}};
}

}  // namespace comera::studio
