// Accuracy against size: the path of each run through its evaluations, and the Pareto front.
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/format.h"
#include "app/studio/compare/pareto_points.h"
#include "app/studio/compare/placed_names.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

struct Way {
  const ComparedRun* run = nullptr;
  std::vector<ParetoPoint> points;
};

struct Range {
  double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = -1e300;
  void take(const ParetoPoint& point) {
    x_low = std::min(x_low, point.mebibytes);
    x_high = std::max(x_high, point.mebibytes);
    y_low = std::min(y_low, point.accuracy * 100);
    y_high = std::max(y_high, point.accuracy * 100);
  }
};

// Leaves out the first third of each path: low accuracies of early steps would flatten the rest.
Range range_of(const std::vector<Way>& ways) {
  Range box;
  for (const Way& way : ways)
    for (size_t i = way.points.size() / 3; i < way.points.size(); ++i) box.take(way.points[i]);
  const double room = std::max(0.2, (box.y_high - box.y_low) * 0.08);
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
std::vector<ImVec2> front_of(const std::vector<Way>& ways) {
  std::vector<ParetoPoint> all;
  for (const Way& way : ways)
    if (!way.run->faded) all.insert(all.end(), way.points.begin(), way.points.end());
  const std::vector<ParetoPoint> front = pareto_front(std::move(all));
  std::vector<ImVec2> stairs;
  if (front.empty()) return stairs;
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  for (const ParetoPoint& point : front) {
    const ImVec2 pixel = ImPlot::PlotToPixels(point.mebibytes, point.accuracy * 100);
    stairs.emplace_back(pixel.x, stairs.empty() ? at.y + size.y : stairs.back().y);
    stairs.push_back(pixel);
  }
  stairs.emplace_back(std::max(at.x + size.x, stairs.back().x), stairs.back().y);
  return stairs;
}

// Names next to the last points, placed where they cover no name and no line; if that is impossible, on a background.
void draw_names_beside(const Compare& compare, const std::vector<Way>& ways, const std::vector<ImVec2>& stairs) {
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float line = ImGui::GetTextLineHeight();
  std::vector<PlacedName> names;
  for (const Way& way : ways) {
    const ImVec2 point = ImPlot::PlotToPixels(way.points.back().mebibytes, way.points.back().accuracy * 100);
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

void draw_way(const Compare& compare, const Way& way) {
  std::vector<double> x, y;
  for (const ParetoPoint& point : way.points) {
    x.push_back(point.mebibytes);
    y.push_back(point.accuracy * 100);
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

void hover(Compare& compare, const std::vector<Way>& ways, std::vector<Copied>& copied) {
  if (!ImPlot::IsPlotHovered()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const Way* nearest = nullptr;
  const ParetoPoint* point = nullptr;
  float best = em(1) * em(1);
  for (const Way& way : ways)
    for (const ParetoPoint& other : way.points) {
      const ImVec2 at = ImPlot::PlotToPixels(other.mebibytes, other.accuracy * 100);
      const float distance = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
      if (distance >= best) continue;
      best = distance;
      nearest = &way;
      point = &other;
    }
  if (!point) return;
  compare.hovered = nearest->run->wanted;
  const std::string name = label_of(compare, *nearest->run), accuracy = significant(point->accuracy * 100, 4) + " %",
                    size = mebibytes(point->mebibytes * (1 << 20)),
                    step = "step " + thousands(static_cast<double>(point->step)) + (point->checkpoint ? ", checkpoint" : "");
  copied = {{"Copy accuracy", accuracy}, {"Copy size", size}, {"Copy line", name + "\t" + step + "\t" + accuracy + "\t" + size}};
  if (!ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(name.c_str());
  text_dim(step);
  ImGui::Text("accuracy %s", accuracy.c_str());
  ImGui::Text("%s = %s", size.c_str(), megabytes(point->mebibytes * (1 << 20)).c_str());
  ImGui::EndTooltip();
}

}  // namespace

void draw_pareto_tab(Compare& compare) {
  std::vector<Way> ways;
  std::string lacking, key = "##pareto";
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    Way way{run.get(), pareto_points(*run)};
    if (way.points.empty()) {
      add_name(lacking, label_of(compare, *run));
      continue;
    }
    key += run->wanted;
    ways.push_back(std::move(way));
  }
  push_small();
  ImGui::AlignTextToFramePadding();
  ImGui::Checkbox("Log", &compare.pareto_log);
  tooltip("Logarithmic size axis.");
  ImGui::SameLine(0, em(1));
  text_fit("Point: evaluation. Large point: the last one. Ring: checkpoint. Dashed: Pareto front of size and accuracy.",
           ImGui::GetContentRegionAvail().x, theme().dim);
  if (!lacking.empty()) banner(Level::warning, "Without accuracy or size: " + lacking);
  if (ways.empty()) {
    ImGui::PopFont();
    empty_state(Icon::chart, "No points yet", "Each evaluation adds a point.");
    return;
  }
  const Range box = range_of(ways);
  const bool log = compare.pareto_log;
  key += log ? "l" : "";
  // Visible range after a zoom (in the last frame), for round tick values.
  double y_low = box.y_low, y_high = box.y_high;
  if (const ImPlotPlot* before = ImPlot::GetPlot(key.c_str()); before && before->Initialized) {
    y_low = before->Axes[ImAxis_Y1].Range.Min;
    y_high = before->Axes[ImAxis_Y1].Range.Max;
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  std::vector<Copied> copied;  // facts of the point under the mouse
  if (ImPlot::BeginPlot(key.c_str(), space, kPlotFlags | ImPlotFlags_NoBoxSelect)) {
    const char* y_title = "Validation accuracy, %";
    const bool high = space.y > ImGui::CalcTextSize(y_title).x;
    ImPlot::SetupAxes(high ? "Whole model, MiB" : nullptr, high ? y_title : nullptr, ImPlotAxisFlags_NoHighlight,
                      ImPlotAxisFlags_NoHighlight);
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
    const std::vector<ImVec2> stairs = front_of(ways);
    draw_front(stairs);
    for (const Way& way : ways) draw_way(compare, way);
    draw_names_beside(compare, ways, stairs);
    hover(compare, ways, copied);
    ImPlot::EndPlot();
    name_item("chart:pareto");
  }
  copy_menu(copied, !copied.empty());
  ImGui::PopFont();
}

namespace {

constexpr const char* kParetoTitle = "Accuracy against size";

Chart pareto_chart(Compare& compare) {
  std::vector<Way> ways;
  std::vector<std::vector<std::string>> table = {{"run", "step", "size (MiB)", "accuracy", "checkpoint"}};
  std::vector<ParetoPoint> all;
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    Way way{run.get(), pareto_points(*run)};
    for (const ParetoPoint& point : way.points)
      table.push_back({label_of(compare, *run), std::to_string(point.step), csv_number(point.mebibytes), csv_number(point.accuracy),
                       point.checkpoint ? "yes" : "no"});
    all.insert(all.end(), way.points.begin(), way.points.end());
    if (!way.points.empty()) ways.push_back(std::move(way));
  }
  constexpr ImVec2 kSize = {900, 480}, kFrom = {64, 84}, kTo = {878, 434};
  Chart chart{"pareto", kParetoTitle, {}, begin_drawing(kSize, "Accuracy against size of the whole model", note_of(compare))};
  Drawing& drawing = chart.drawing;
  draw_names(drawing, compare, 63);
  const Range box = range_of(ways);
  const bool log = compare.pareto_log;
  const double x_low = log ? box.x_low / 1.25 : 0, x_high = log ? box.x_high * 1.25 : box.x_high * 1.06;
  const auto place = [&](double mebibytes, double percent) {
    const double x = log ? std::log(mebibytes / x_low) / std::log(x_high / x_low) : (mebibytes - x_low) / (x_high - x_low);
    const double y = (percent - box.y_low) / (box.y_high - box.y_low);
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
  drawing.text({(kFrom.x + kTo.x) / 2, kSize.y - 13}, 12, theme().dim, "Whole model in MiB, validation accuracy in %. Ring: checkpoint",
               Anchor::middle);
  drawing.clips.push_back({kFrom.x, kFrom.y, kTo.x, kTo.y});
  std::vector<Point> stairs;
  for (const ParetoPoint& point : pareto_front(std::move(all))) {
    const ImVec2 at = place(point.mebibytes, point.accuracy * 100);
    stairs.emplace_back(at.x, stairs.empty() ? kTo.y : stairs.back().y);
    stairs.push_back(at);
  }
  stairs.emplace_back(kTo.x, stairs.back().y);
  drawing.line(stairs, theme().dim, 1.2f, 0, 5);
  for (const Way& way : ways) {
    std::vector<Point> points;
    const ImU32 color = color_of(*way.run);
    for (const ParetoPoint& point : way.points) points.push_back(place(point.mebibytes, point.accuracy * 100));
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
  if (std::none_of(compare.runs.begin(), compare.runs.end(), [](const auto& run) { return run->read() && !pareto_points(*run).empty(); }))
    return {};
  return {{"pareto", kParetoTitle, [&compare] { return pareto_chart(compare); }}};
}

}  // namespace comera::studio
