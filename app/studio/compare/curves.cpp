// Metrics of all runs or groups, one plot per metric, over steps, samples, time or epochs; below the plots the values at the cursor.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "app/format.h"
#include "app/studio/compare/group_toolbar.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_over.h"
#include "app/studio/parts/texts.h"
#include "core/base/rounding.h"

namespace comera::studio {
namespace {

constexpr float kRowPadding = 0.2f;  // in the table of values, in em

struct Metric {
  std::string name;
  bool shown = false;
};

// Metrics of all runs, known ones first.
std::vector<Metric> metrics_of(const Compare& compare) {
  std::map<std::string, bool> names;
  for (const auto& run : compare.runs)
    if (run->read())
      for (const auto& [name, curve] : run->view->metrics) names[name] |= !curve.empty();
  std::vector<Metric> found;
  for (const MetricInfo& info : all_metrics())
    if (info.better != Better::none && names[info.name]) found.push_back({info.name, info.main});
  // Imported runs may have no known metric: then the first metrics are shown.
  const bool foreign = found.empty();
  for (const auto& [name, any] : names)
    if (any && std::none_of(found.begin(), found.end(), [&name = name](const Metric& metric) { return metric.name == name; }))
      found.push_back({name, foreign && found.size() < 6});
  for (Metric& metric : found)
    if (compare.toggled_metrics.contains(metric.name)) metric.shown = !metric.shown;
  return found;
}

void toolbar(Compare& compare, const std::vector<Metric>& metrics) {
  PlotView& plots = compare.plots;
  push_small();
  ImGui::AlignTextToFramePadding();
  text_dim("X axis");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(7));
  const bool over = !compare.over.empty();
  if (ImGui::BeginCombo("##axis", whole_label(over ? compare.over : title_of(compare.axis)).c_str(), ImGuiComboFlags_HeightLarge)) {
    for (int i = 0; i < kXAxes; ++i)
      if (const auto axis = static_cast<XAxis>(i); ImGui::Selectable(title_of(axis), !over && axis == compare.axis)) {
        compare.over.clear();
        set_axis(compare, axis);
      }
    std::vector<std::string> names;
    for (const Metric& metric : metrics) names.push_back(metric.name);
    if (choose_over(compare.over, names)) set_axis(compare, XAxis::step);
    ImGui::EndCombo();
  }
  tooltip("Time counts training steps only, without evaluation, checkpoints and pauses.");
  ImGui::SameLine(0, em(0.8f));
  ImGui::SetNextItemWidth(em(7.6f));
  size_t shown = 0;
  for (const Metric& metric : metrics) shown += metric.shown;
  if (ImGui::BeginCombo("##metrics", ("Metrics: " + std::to_string(shown)).c_str(), ImGuiComboFlags_HeightLarge)) {
    for (const Metric& metric : metrics) {
      bool on = metric.shown;
      if (!ImGui::Checkbox((whole_label(describe_metric(metric.name).title) + "###" + metric.name).c_str(), &on)) continue;
      if (!compare.toggled_metrics.erase(metric.name)) compare.toggled_metrics.insert(metric.name);
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine(0, em(0.8f));
  ImGui::SetNextItemWidth(em(6));
  if (ImGui::BeginCombo("##by-run", compare.by_run ? "By run" : "Overlay")) {
    if (ImGui::Selectable("Overlay###overlay", !compare.by_run)) compare.by_run = false;
    if (ImGui::Selectable("By run###by-run", compare.by_run)) compare.by_run = true;
    ImGui::EndCombo();
  }
  tooltip("All runs in one plot, or one plot per run with the same axes.");
  group_toolbar(compare);
  plot_toolbar(plots);
  ImGui::PopFont();
}

bool is_faint(const Compare& compare, const RunGroup& group) {
  return std::all_of(group.runs.begin(), group.runs.end(), [&](size_t i) { return compare.runs[i]->faint(); });
}

// Colour of the group's first run; faint if all its runs are faint.
ImU32 color_of(const Compare& compare, const RunGroup& group) {
  const ComparedRun& first = *compare.runs[group.runs[0]];
  return is_faint(compare, group) ? color_of(first) : theme().series[static_cast<size_t>(first.slot)];
}

// Values of the runs in the group that have one.
std::vector<double> values_of(const Compare& compare, const RunGroup& group, const Quantity& quantity) {
  std::vector<double> values;
  for (const size_t i : group.runs)
    if (const ComparedRun& run = *compare.runs[i]; run.read())
      if (const double value = quantity.value(run); std::isfinite(value)) values.push_back(value);
  return values;
}

// Legend of a group: the sign of its first run and the common property of its runs. While the mouse is on it, the group's line is
// highlighted.
void group_label(Compare& compare, const RunGroup& group, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ComparedRun& first = *compare.runs[group.runs[0]];
  const bool faint = is_faint(compare, group);
  const float sample = em(kSampleWidth), gap = em(0.4f);
  draw_sample(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetTextLineHeight() / 2}, sample, first.slot, faint ? 0.3f : 1);
  ImGui::Dummy({sample, ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, gap);
  const std::string legend = legend_of(group, group.runs.size());
  // With little room the path of a setting is shortened to its last part.
  const float room = std::max(em(1), width - sample - gap);
  const auto fits = [&](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x <= room; };
  const size_t dot = fits(legend) ? std::string::npos : legend.rfind('.', legend.find(' '));
  const std::string shown = dot == std::string::npos ? legend : legend.substr(dot + 1);
  text_fit(shown, room, faint ? theme().dim : theme().text);
  if (shown != legend && fits(shown)) tooltip(legend.c_str());
  name_item("legend:" + legend);
  if (ImGui::IsMouseHoveringRect(at, {at.x + width, at.y + ImGui::GetTextLineHeight()}) && ImGui::IsWindowHovered())
    compare.hovered = first.wanted;
}

// Table of the values at the cursor, which is also the legend of the plots: a row per run with its sign; for a group its mean or median,
// and its runs below.
void values(Compare& compare, const std::vector<Metric>& metrics, const std::vector<RunGroup>& groups, float height) {
  std::vector<const Metric*> shown;
  for (const Metric& metric : metrics)
    if (metric.shown) shown.push_back(&metric);
  push_small();
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.5f), em(kRowPadding)));
  const bool open = ImGui::BeginTable("values", static_cast<int>(shown.size()) + 2,
                                      ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit, {0, height});
  if (open) {
    ImGui::TableSetupScrollFreeze(1, 1);
    const float room = ImGui::GetContentRegionAvail().x, columns = static_cast<float>(shown.size() + 1);
    std::vector<float> widths(shown.size() + 1, std::clamp((room - em(12)) / columns - em(1), em(5), em(8)));
    for (size_t i = 0; i < shown.size(); ++i)
      for (const std::string& head : {std::string(describe_metric(shown[i]->name).title), quantity_of(shown[i]->name).how})
        widths[i + 1] = std::max(widths[i + 1], ImGui::CalcTextSize(head.c_str()).x);
    const float all = std::accumulate(widths.begin(), widths.end(), columns * em(1));
    ImGui::TableSetupColumn("Run", 0, std::clamp(room - all - em(2), em(9), em(26)));
    for (const float width : widths) ImGui::TableSetupColumn("", 0, width);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    text_dim(compare.cursor < 0 ? "At the end" : "At the cursor");
    const auto right = [](const std::string& text, ImU32 color) {
      text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    };
    ImGui::TableNextColumn();
    right("Step", theme().dim);
    std::vector<Quantity> quantities;
    for (const Metric* metric : shown) {
      quantities.push_back(quantity_of(metric->name));
      ImGui::TableNextColumn();
      right(describe_metric(metric->name).title, theme().dim);
      right(quantities.back().how, theme().dim);
    }
    const auto numbers = [&](const std::string& step, const std::string& name, const auto& value_of) {
      ImGui::PushFont(fonts().numbers, 0);
      ImGui::TableNextColumn();
      right(step, theme().dim);
      for (const Quantity& quantity : quantities) {
        ImGui::TableNextColumn();
        const double value = value_of(quantity);
        right(std::isfinite(value) ? quantity.text(value) : "-", std::isfinite(value) ? theme().text : theme().dim);
        if (!std::isfinite(value)) continue;
        name_item("value:" + quantity.id + ":" + name + ":" + quantity.text(value));
        ImGui::PushID((quantity.id + name).c_str());
        copy_menu({{"Copy value", quantity.text(value)}, {"Copy number", csv_number(value)}});
        ImGui::PopID();
      }
      ImGui::PopFont();
    };
    for (const RunGroup& group : groups) {
      if (group.together()) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        group_label(compare, group, ImGui::GetContentRegionAvail().x);
        numbers(name_of(compare.group_middle), group.title,
                [&](const Quantity& quantity) { return middle_of(values_of(compare, group, quantity), compare.group_middle); });
      }
      for (const size_t i : group.runs) {
        const ComparedRun& run = *compare.runs[i];
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        run_label(compare, run, ImGui::GetContentRegionAvail().x, !group.together());
        if (run.read()) numbers(thousands(run.step()), run.wanted, [&](const Quantity& quantity) { return quantity.value(run); });
      }
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

// The plots, and the texts and lines that they point to.
struct Curves {
  std::deque<std::string> texts;
  std::deque<std::vector<PlotLine>> fitted;  // one element per metric: all its lines
  std::vector<PlotTile> tiles;
  size_t by_metric = 1;  // number of tiles per metric, drawn side by side
};

// The lines of a metric, one per group. `note`: runs that are not drawn, with the reason.
std::vector<PlotLine> lines_of(Compare& compare, const Metric& metric, const std::vector<RunGroup>& groups, Curves& curves,
                               std::string& note) {
  const MetricInfo look = describe_metric(metric.name);
  const ComparedRun* baseline = compare.baseline_run();
  std::string lacking, constant, other, without;
  std::vector<PlotLine> lines;
  for (const RunGroup& group : groups) {
    std::vector<size_t> drawn;
    for (const size_t i : group.runs) {
      const ComparedRun& run = *compare.runs[i];
      if (!run.read()) continue;
      const Curve& curve = run.view->metric(metric.name);
      if (curve.empty())
        add_name(lacking, label_of(compare, run));
      else if (no_axis(run, compare.axis))
        continue;  // reported above all plots
      else if (metric.name == "entries" && curve.last() == 0)
        add_name(constant, label_of(compare, run) + " (" + mebibytes(run.view->snapshot->size.bytes) + ")");
      else
        drawn.push_back(i);
      if (const char* why = baseline ? incomparable(run, *baseline, metric.name) : nullptr; why && !curve.empty())
        add_name(other, label_of(compare, run) + " (" + why + ")");
    }
    if (drawn.empty()) continue;
    const ComparedRun& first = *compare.runs[drawn[0]];
    if (!compare.over.empty() && first.view->metric(compare.over).empty()) {
      add_name(without, label_of(compare, first));
      continue;
    }
    const ModelSize& size = first.view->snapshot->size;
    const int slot = compare.runs[group.runs[0]]->slot;  // slot of the group, even if this run lacks the metric
    curves.texts.push_back(legend_of(group, drawn.size()));
    PlotLine line{.curve = &first.view->metric(metric.name), .label = curves.texts.back().c_str(), .color = color_of(compare, group)};
    line.owner = static_cast<int>(drawn[0]);
    for (const size_t i : group.runs) line.weight = std::max(line.weight, weight_of(compare, *compare.runs[i]));
    line.smooth = look.noisy;
    line.points = look.recorded == Recorded::evaluation;
    line.scale = look.factor * (metric.name != "entries" ? 1 : size.bytes_an_entry());
    line.axis = axis_of(first, compare.axis);
    line.end = static_cast<double>(first.last_step());
    if (!compare.over.empty()) line.over = &first.view->metric(compare.over);
    line.dashed = dashed(slot);
    line.marker = marker_of(slot);
    if (drawn.size() > 1) {
      const GroupCurve& together = group_curve(compare, drawn, metric.name, look.noisy);
      line.curve = &together.middle;
      line.low = &together.low;
      line.high = &together.high;
      line.band = name_of(compare.group_band);
      curves.texts.push_back(name_of(compare.group_middle));
      if (look.noisy && compare.plots.smoothing > 0) curves.texts.back() += " of smoothed " + significant(compare.plots.smoothing, 3);
      line.middle = curves.texts.back().c_str();
      line.smooth = false;
      line.axis = {};
      for (const size_t i : drawn)
        line.end = std::min(i == drawn[0] ? INFINITY : line.end,
                            axis_of(*compare.runs[i], compare.axis).at(static_cast<double>(compare.runs[i]->last_step())));
    }
    lines.push_back(line);
  }
  for (PlotLine& line : lines) line.raw_alpha = lines.size() > 3 && !compare.by_run ? 0.09f : 0.16f;
  const auto add = [&](const std::string& words, const std::string& names) {
    if (!names.empty()) note += (note.empty() ? "" : ". ") + words + names;
  };
  add("No " + metric.name + ": ", lacking);
  add("Dense, not drawn: ", constant);
  add("No " + compare.over + " as the x axis: ", without);
  add("Not comparable with the baseline: ", other);
  return lines;
}

Curves curves_of(Compare& compare, const std::vector<Metric>& metrics, const std::vector<RunGroup>& groups) {
  compare.plots.over_title = compare.over;
  Curves curves;
  for (const Metric& metric : metrics) {
    if (!metric.shown) continue;
    const MetricInfo look = describe_metric(metric.name);
    curves.texts.push_back(metric.name);
    const std::string& id = curves.texts.back();
    curves.texts.push_back(look.title);
    PlotTile tile{.id = id.c_str(), .title = curves.texts.back().c_str(), .help = look.help};
    tile.empty = "No run has this metric on this axis.";
    tile.unit = look.unit;
    tile.from_zero = look.from_zero;
    tile.can_log = look.log;
    tile.legend = false;
    curves.fitted.push_back(lines_of(compare, metric, groups, curves, tile.note));
    const std::vector<PlotLine>& lines = curves.fitted.back();
    if (!compare.by_run || lines.empty()) {
      tile.lines = lines;
      curves.tiles.push_back(std::move(tile));
      continue;
    }
    curves.by_metric = std::max(curves.by_metric, lines.size());
    for (const PlotLine& line : lines) {
      PlotTile one = tile;
      if (&line != lines.data()) one.note = tile.note.empty() ? "" : " ";  // only once; keeps plots aligned
      curves.texts.push_back(metric.name + "/" + std::to_string(&line - lines.data()));
      one.id = curves.texts.back().c_str();
      curves.texts.push_back(std::string(look.title) + ", " + line.label);
      one.title = curves.texts.back().c_str();
      one.help = nullptr;
      one.lines = {line};
      one.fitted = &lines;
      curves.tiles.push_back(std::move(one));
    }
  }
  for (PlotTile& tile : curves.tiles)
    tile.menu = [&compare, title = std::string(tile.title)] {
      ImGui::Separator();
      if (ImGui::MenuItem("Export ...###export")) compare.export_asked = title;
    };
  return curves;
}

}  // namespace

std::vector<ListedChart> curves_charts(Compare& compare) {
  std::vector<ListedChart> out;
  follow_head(compare.plots, last_position(compare));
  const auto curves = std::make_shared<const Curves>(curves_of(compare, metrics_of(compare), run_groups(compare)));
  for (const PlotTile& tile : curves->tiles)
    if (std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); })) {
      std::string name = "curves-" + std::string(tile.id);
      std::replace(name.begin(), name.end(), '/', '-');
      out.push_back(
          {name, tile.title, [&compare, curves, &tile, name] { return chart_of(name, figure_of(compare.plots, tile, note_of(compare))); }});
    }
  return out;
}

void draw_curves_tab(Compare& compare) {
  PlotView& plots = compare.plots;
  const std::vector<Metric> metrics = metrics_of(compare);
  toolbar(compare, metrics);
  plots.cursor = std::exchange(plots.hovered, -1);
  plots.replay = compare.cursor;
  follow_head(plots, last_position(compare));
  // Runs without a position on this axis.
  std::map<std::string, std::string> without;  // names by reason
  for (const auto& run : compare.runs)
    if (const char* why = run->read() ? no_axis(*run, compare.axis) : nullptr) add_name(without[why], label_of(compare, *run));
  for (const auto& [why, names] : without) banner(Level::warning, "Not on this axis: " + names + " (" + why + ")");
  const std::vector<RunGroup> groups = run_groups(compare);
  const Curves curves = curves_of(compare, metrics, groups);
  if (curves.tiles.empty()) {
    empty_state(Icon::chart, "No metric selected", "Select metrics under Metrics.");
    return;
  }
  push_small();
  const float line = ImGui::GetTextLineHeight() + 2 * em(kRowPadding);
  ImGui::PopFont();
  const float full = ImGui::GetContentRegionAvail().y;
  const auto heads = std::count_if(groups.begin(), groups.end(), [](const RunGroup& group) { return group.together(); });
  const float table =
      std::min(line * static_cast<float>(compare.runs.size() + static_cast<size_t>(heads) + 2) + ImGui::GetStyle().ScrollbarSize + em(0.5f),
               full * 0.42f);
  const float gap = ImGui::GetStyle().ItemSpacing.x, width_of_all = ImGui::GetContentRegionAvail().x;
  const int fitting = width_of_all > em(66) ? 3 : width_of_all > em(34) ? 2 : 1;
  // Plots of one metric share a row if each is wide enough.
  const int columns = compare.by_run ? std::clamp(static_cast<int>(width_of_all / em(13)), 1, static_cast<int>(curves.by_metric)) : fitting;
  const int rows = ceil_div(static_cast<int>(curves.tiles.size()), columns);
  const float room = full - table - gap;
  const float height = std::max(em(9), std::floor((room - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows)));
  plots.clicked = -1;
  plots.hovered_owner = -1;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  ImGui::BeginChild("grid", {0, room});
  const float inner = ImGui::GetContentRegionAvail().x;  // excludes the scroll bar
  const float width = std::floor((inner - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns));
  int column = 0;
  const std::vector<PlotLine>* metric = curves.tiles[0].fitted;
  for (const PlotTile& tile : curves.tiles) {
    if (std::exchange(metric, tile.fitted) != tile.fitted) column = 0;  // start a new row for each metric
    if (column % columns != 0) ImGui::SameLine();
    ++column;
    plot_tile(plots, tile, {}, {width, height});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  if (plots.clicked >= 0) move_cursor(compare, plots.clicked);
  if (const int owner = plots.hovered_owner; owner >= 0) compare.hovered = compare.runs[static_cast<size_t>(owner)]->wanted;
  values(compare, metrics, groups, table);
}

}  // namespace comera::studio
