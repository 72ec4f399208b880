// The metrics of all runs, one plot a metric, over steps, samples, time or epochs; under them the values at the cursor.
#include <algorithm>
#include <cmath>
#include <map>

#include "app/format.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

// How a metric is drawn. One that is not listed is drawn as it is, when it is asked for.
struct MetricLook {
  const char* name;
  const char* title;
  const char* help;
  const char* unit;
  double scale;
  bool smooth, points, from_zero, can_log;
};
constexpr MetricLook kLooks[] = {
    {"val_accuracy", "Accuracy", "Share of held-back examples that are labelled right.", "%", 100, false, true, false, false},
    {"train_loss", "Training loss", "Mean cross-entropy of each batch.", "", 1, true, false, false, true},
    {"val_loss", "Evaluation loss", "Mean cross-entropy on the held-back examples.", "", 1, false, true, false, true},
    {"entries", "Size", "Live entries of the tensor trains; of a dense model everything that is trained.", "MiB", 1, false, false, true,
     false},
    {"step_ms", "Step time", "Milliseconds of each training step.", "ms", 1, true, false, true, false},
    {"train_accuracy", "Training accuracy", "Share of each batch that is labelled right.", "%", 100, true, false, false, false},
};

MetricLook look_of(const std::string& name) {
  for (const MetricLook& look : kLooks)
    if (name == look.name) return look;
  return {name.c_str(), name.c_str(), nullptr, "", 1, false, false, false, false};
}

constexpr float kRowPadding = 0.2f;  // of the table of values

struct Metric {
  std::string name;
  bool shown = false;
};

// Those that some run has, the known ones first.
std::vector<Metric> metrics_of(const Compare& compare) {
  std::map<std::string, bool> names;
  for (const auto& run : compare.runs)
    if (run->read())
      for (const auto& [name, curve] : run->view->metrics) names[name] |= !curve.empty();
  std::vector<Metric> found;
  for (const MetricLook& look : kLooks)
    if (names[look.name]) found.push_back({look.name, look.name != std::string("train_accuracy")});
  // Of runs from elsewhere nothing may be known: then the first ones are shown.
  const bool foreign = found.empty();
  for (const auto& [name, any] : names)
    if (any && std::none_of(found.begin(), found.end(), [&](const Metric& metric) { return metric.name == name; }))
      found.push_back({name, foreign && found.size() < 6});
  for (Metric& metric : found)
    if (compare.toggled_metrics.contains(metric.name)) metric.shown = !metric.shown;
  return found;
}

void toolbar(Compare& compare, const std::vector<Metric>& metrics) {
  PlotView& plots = compare.plots;
  push_small();
  ImGui::AlignTextToFramePadding();
  text_dim("Over");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(7));
  if (ImGui::BeginCombo("##axis", title_of(compare.axis))) {
    for (int i = 0; i < kXAxes; ++i)
      if (const auto axis = static_cast<XAxis>(i); ImGui::Selectable(title_of(axis), axis == compare.axis)) set_axis(compare, axis);
    ImGui::EndCombo();
  }
  tooltip("Time is that of the training steps: evaluation, checkpoints and pauses are not in it.");
  ImGui::SameLine(0, em(0.8f));
  ImGui::SetNextItemWidth(em(7.5f));
  size_t shown = 0;
  for (const Metric& metric : metrics) shown += metric.shown;
  if (ImGui::BeginCombo("##metrics", ("Metrics: " + std::to_string(shown)).c_str(), ImGuiComboFlags_HeightLarge)) {
    for (const Metric& metric : metrics) {
      bool on = metric.shown;
      if (!ImGui::Checkbox((std::string(look_of(metric.name).title) + "###" + metric.name).c_str(), &on)) continue;
      if (!compare.toggled_metrics.erase(metric.name)) compare.toggled_metrics.insert(metric.name);
    }
    ImGui::EndCombo();
  }
  const auto next = [](float width) {  // on this line, or on the next one
    ImGui::SameLine(0, em(0.8f));
    if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
  };
  next(em(14));
  text_dim("Smoothing");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(7));
  ImGui::SliderFloat("##smoothing", &plots.smoothing, 0, 0.999f, "%.3f");
  tooltip("Weight of the past in the moving average. The raw curve stays visible behind it.");
  next(em(5));
  ImGui::Checkbox("Log", &plots.log_scale);
  tooltip("Losses on a logarithmic axis.");
  next(em(7));
  ImGui::Checkbox("Outliers", &plots.outliers);
  tooltip("Off: the highest and the lowest percent of the values do not stretch the axis.");
  if (!plots.follow) {
    next(em(6));
    if (button("Fit", {.icon = Icon::step, .primary = true, .tooltip = "Show the whole runs again"})) plots.follow = true;
  }
  ImGui::PopFont();
}

// The values of every run at the cursor, with its sign: the legend of the plots.
void values(const Compare& compare, const std::vector<Metric>& metrics, float height) {
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
    const float width = std::clamp((room - em(12)) / columns - em(1), em(5), em(8));
    ImGui::TableSetupColumn("Run", 0, std::clamp(room - columns * (width + em(1)) - em(2), em(9), em(26)));
    for (size_t i = 0; i <= shown.size(); ++i) ImGui::TableSetupColumn("", 0, width);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    text_dim(compare.cursor < 0 ? "At the end" : "At the cursor");
    const auto right = [](const std::string& text, ImU32 color) {
      text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    };
    ImGui::TableNextColumn();
    right("Step", theme().dim);
    for (const Metric* metric : shown) {
      ImGui::TableNextColumn();
      right(look_of(metric->name).title, theme().dim);
    }
    for (const auto& run : compare.runs) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      run_label(compare, *run, ImGui::GetContentRegionAvail().x);
      if (!run->read()) continue;
      ImGui::PushFont(fonts().numbers, 0);
      ImGui::TableNextColumn();
      right(thousands(run->step()), theme().dim);
      for (const Metric* metric : shown) {
        ImGui::TableNextColumn();
        const MetricLook look = look_of(metric->name);
        const double value = run->view->metric(metric->name).at(run->step()) * look.scale;
        std::string text = std::isfinite(value) ? significant(value, 4) : "-";
        if (std::isfinite(value) && metric->name == "entries")
          text = run->snapshot().size.bytes > 0 ? mebibytes(run->snapshot().size.bytes) : thousands(value);
        else if (std::isfinite(value) && *look.unit)
          text += std::string(" ") + look.unit;
        right(text, std::isfinite(value) ? theme().text : theme().dim);
      }
      ImGui::PopFont();
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace

void draw_curves_tab(Compare& compare) {
  PlotView& plots = compare.plots;
  const std::vector<Metric> metrics = metrics_of(compare);
  toolbar(compare, metrics);
  plots.cursor = std::exchange(plots.hovered, -1);
  plots.replay = compare.cursor;
  follow_head(plots, last_position(compare));
  // Runs that have no place on this axis.
  for (const auto& run : compare.runs)
    if (run->read() && no_axis(*run, compare.axis))
      banner(Level::warning, label_of(compare, *run) + " " + no_axis(*run, compare.axis) + ": it is not drawn over this axis");

  std::vector<std::string> labels;
  for (const auto& run : compare.runs) labels.push_back(label_of(compare, *run));
  std::vector<PlotTile> tiles;
  for (const Metric& metric : metrics) {
    if (!metric.shown) continue;
    const MetricLook look = look_of(metric.name);
    PlotTile tile{.id = metric.name.c_str(), .title = look.title, .help = look.help, .unit = look.unit};
    tile.from_zero = look.from_zero;
    tile.can_log = look.can_log;
    tile.legend = false;
    tile.empty = "No run has points of it on this axis.";
    std::string lacking, constant;
    for (size_t i = 0; i < compare.runs.size(); ++i) {
      const ComparedRun& run = *compare.runs[i];
      if (!run.read()) continue;
      const Curve& curve = run.view->metric(metric.name);
      if (curve.empty()) {
        add_name(lacking, labels[i]);
        continue;
      }
      if (no_axis(run, compare.axis)) continue;
      const ModelSize& size = run.view->snapshot->size;
      const bool in_bytes = metric.name == "entries";
      if (in_bytes && curve.last() == 0) {  // dense
        add_name(constant, labels[i] + " of " + mebibytes(size.bytes));
        continue;
      }
      const double scale = in_bytes ? (size.entries > 0 ? size.bytes / size.entries : 4) / (1 << 20) : look.scale;
      tile.lines.push_back({.curve = &curve,
                            .label = labels[i].c_str(),
                            .color = color_of(run),
                            .smooth = look.smooth,
                            .points = look.points,
                            .scale = scale,
                            .axis = axis_of(run, compare.axis),
                            .dashed = dashed(run.slot)});
    }
    if (!lacking.empty()) tile.note = "No " + metric.name + ": " + lacking;
    if (!constant.empty()) tile.note += (lacking.empty() ? "" : ". ") + std::string("Dense, not drawn: ") + constant;
    for (PlotLine& drawn : tile.lines) drawn.raw_alpha = tile.lines.size() > 3 ? 0.09f : 0.16f;
    tiles.push_back(std::move(tile));
  }
  if (tiles.empty()) {
    empty_state(Icon::chart, "No metric is chosen", "Choose some under Metrics.");
    return;
  }
  push_small();
  const float line = ImGui::GetTextLineHeight() + 2 * em(kRowPadding);
  ImGui::PopFont();
  const float full = ImGui::GetContentRegionAvail().y;
  const float table =
      std::min(line * static_cast<float>(compare.runs.size() + 1) + ImGui::GetStyle().ScrollbarSize + em(0.5f), full * 0.42f);
  const float gap = ImGui::GetStyle().ItemSpacing.x, width_of_all = ImGui::GetContentRegionAvail().x;
  const int columns = width_of_all > em(66) ? 3 : width_of_all > em(34) ? 2 : 1;
  const int rows = (static_cast<int>(tiles.size()) + columns - 1) / columns;
  const float room = full - table - gap;
  const float height = std::max(em(9), std::floor((room - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows)));
  plots.clicked = -1;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  ImGui::BeginChild("grid", {0, room});
  const float inner = ImGui::GetContentRegionAvail().x;  // a scroll bar takes some
  const float width = std::floor((inner - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns));
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (i % static_cast<size_t>(columns) != 0) ImGui::SameLine();
    plot_tile(plots, tiles[i], {}, {width, height});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  if (plots.clicked >= 0) move_cursor(compare, plots.clicked);
  values(compare, metrics, table);
}

}  // namespace comera::studio
