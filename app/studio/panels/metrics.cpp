// Curves of the shown run, in a grid of cards that share their steps.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/plots.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

// The value of a curve at a step; empty before its first point.
std::string value_at(const Curve& curve, double step, int digits = 4) {
  return curve.empty() || step < curve.x().front() ? "" : significant(curve.at(step), digits);
}
std::string percent_at(const Curve& curve, double step) {
  char text[32] = "";
  if (const double value = curve.at(step); std::isfinite(value)) std::snprintf(text, sizeof text, "%.1f %%", value * 100);
  return text;
}

void toolbar(UiState& ui) {
  PlotView& plots = ui.plots;
  ImGui::AlignTextToFramePadding();
  push_small();
  text_dim("Smoothing");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(9));
  ImGui::SliderFloat("##smoothing", &plots.smoothing, 0, 0.999f, "%.3f");
  tooltip("Weight of the past in the moving average. The raw curve stays visible behind it.");
  ImGui::SameLine(0, em(1));
  ImGui::Checkbox("Log", &plots.log_scale);
  tooltip("Losses on a logarithmic axis.");
  ImGui::SameLine(0, em(0.8f));
  ImGui::Checkbox("Outliers", &plots.outliers);
  tooltip("Off: the highest and the lowest percent of the values do not stretch the axis.");
  if (!plots.follow) {
    ImGui::SameLine(0, em(0.8f));
    if (button("Follow", {.icon = Icon::step, .primary = true, .tooltip = "Show the whole run again, with its newest step"}))
      plots.follow = true;
  }
  ImGui::SameLine();
  export_button(ui, "metrics");
  ImGui::PopFont();
}

// What the grid shows, in its order.
std::vector<PlotTile> tiles_of(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  const Theme& t = theme();
  // Records may be ahead of the newest snapshot; only the past is looked up by its step.
  const double at = ui.replaying() ? static_cast<double>(s.step) : INFINITY;
  const ComeraConfig& comera = ui.config().method.comera;
  const bool tensorised = view.config.tensorised();
  const Curve& entries = view.metric("entries");
  const double bytes_an_entry = s.size.entries > 0 ? s.size.bytes / s.size.entries : 4;
  const bool waiting = view.live && !view.ended();
  const std::string eval_wait =
      waiting && view.config.train.eval_every > 0
          ? "The first evaluation comes at step " + thousands(static_cast<double>(view.config.train.eval_every)) + "."
          : "This run was not evaluated.";
  const char* step_wait = waiting     ? "The first step draws the first point."
                          : view.live ? "The run ended before its first step."
                                      : "Nothing was stored for this run.";
  std::vector<PlotTile> tiles = {
      {.id = "loss",
       .title = "Training loss",
       .help = "Mean cross-entropy of each batch. Dashed: the loss to hold in the late stage.",
       .value = value_at(view.metric("train_loss"), at),
       .lines = {{&view.metric("train_loss"), "loss", t.series[0], true}},
       .target_value = tensorised && s.late ? comera.loss_target : 0,
       .empty = step_wait,
       .can_log = true},
      {.id = "accuracy",
       .title = "Accuracy",
       .help = "Share of held-back examples whose largest logit is their label's; behind it that of the training batches.",
       .value = percent_at(view.metric("val_accuracy"), at),
       .lines = {{&view.metric("train_accuracy"), "train", with_alpha(t.series[7], 0.7f), true, false, 100},
                 {&view.metric("val_accuracy"), "eval", t.series[2], false, true, 100}},
       .empty = step_wait,
       .unit = "%"},
      {.id = "val_loss",
       .title = "Evaluation loss",
       .help = "Mean cross-entropy on the held-back examples.",
       .value = value_at(view.metric("val_loss"), at),
       .lines = {{&view.metric("val_loss"), "loss", t.series[2], false, true}},
       .empty = eval_wait,
       .can_log = true},
      {.id = "size",
       .title = "Size of the tensor trains",
       .help = "MiB of the live entries: what the ranks leave. Dashed: the size target.",
       .value = entries.empty() ? "" : mebibytes(entries.at(at) * bytes_an_entry),
       .lines = {{&entries, "size", t.series[1], false, false, bytes_an_entry / (1 << 20)}},
       .target = &view.metric("target_entries"),
       .target_scale = bytes_an_entry / (1 << 20),
       .empty = step_wait,
       .unit = "MiB",
       .from_zero = true},
      {.id = "step_ms",
       .title = "Step time",
       .help = "Milliseconds of each training step; evaluation and checkpoints are not in it.",
       .value = view.metric("step_ms").empty() ? "" : significant(s.last.step_ms, 3) + " ms",
       .lines = {{&view.metric("step_ms"), "step", t.series[6], true}},
       .empty = step_wait,
       .unit = "ms",
       .from_zero = true},
  };
  if (tensorised) {
    tiles.push_back({.id = "lr",
                     .title = "Learning rates",
                     .help = "In force at each step: of TT cores, of rank vectors, of everything else.",
                     .lines = {{&view.metric("lr_core"), "cores", t.series[0]},
                               {&view.metric("lr_rank"), "ranks", t.series[1]},
                               {&view.metric("lr_rest"), "rest", t.series[3]}},
                     .empty = step_wait,
                     .from_zero = true});
  } else {  // of dense matrices neither changes by itself
    std::erase_if(tiles, [](const PlotTile& tile) { return std::string_view(tile.id) == "size"; });
    tiles.push_back({.id = "lr",
                     .title = "Learning rate",
                     .help = "In force at each step.",
                     .value = value_at(view.metric("lr_rest"), at, 3),
                     .lines = {{&view.metric("lr_rest"), "rate", t.series[0]}},
                     .empty = step_wait,
                     .from_zero = true});
  }
  return tiles;
}

}  // namespace

void draw_metrics(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  if (!view.config_problem.empty())
    banner(Level::warning, "The settings of this run cannot be read, so its sizes and ranks are not known: " + view.config_problem);
  if (!ui.has_run()) {
    if (begin_card("metrics-empty") &&
        empty_state(Icon::chart, "No run yet", "Loss, accuracy, size and speed are drawn here while a run trains.", "Run the demo"))
      start_preset(ui, "demo");
    end_card();
    return;
  }
  if (s.phase == Phase::failed || s.phase == Phase::diverged) {
    std::string text = s.message.empty() ? name_of(s.phase) : s.message;
    if (!s.error_why.empty()) text += ": " + s.error_why;
    if (!s.error_hint.empty()) text += "\nTry: " + s.error_hint;
    banner(Level::error, text);
  }
  toolbar(ui);
  follow_head(ui.plots, static_cast<double>(view.snapshot->step));
  const std::vector<PlotTile> tiles = tiles_of(ui);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const int columns = space.x > em(66) ? 3 : space.x > em(34) ? 2 : 1;
  const int rows = (static_cast<int>(tiles.size()) + columns - 1) / columns;
  const float height = std::max(em(7), std::floor((space.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  ImGui::BeginChild("grid", {0, 0});
  const float inner = ImGui::GetContentRegionAvail().x;  // a scroll bar takes some
  const float width = std::floor((inner - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns));
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (i % static_cast<size_t>(columns) != 0) ImGui::SameLine();
    plot_tile(ui.plots, tiles[i], view.marks, {width, height});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

std::vector<Chart> metrics_charts(UiState& ui) {
  std::vector<Chart> out;
  follow_head(ui.plots, static_cast<double>(ui.shown().snapshot->step));
  std::string note = ui.snapshot().name + ", step " + thousands(static_cast<double>(ui.snapshot().step));
  PlotView& view = ui.plots;
  const double low = view.x_low, high = view.x_high;
  if (const StepRange& selected = ui.timeline.selection; selected.any()) {  // what is selected, whatever is visible
    view.x_low = static_cast<double>(selected.first);
    view.x_high = static_cast<double>(selected.last);
    note = ui.snapshot().name + ", steps " + thousands(view.x_low) + " to " + thousands(view.x_high);
  }
  for (const PlotTile& tile : tiles_of(ui))
    if (std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); }))
      out.push_back(chart_of(tile.id, figure_of(view, tile, note)));
  view.x_low = low;
  view.x_high = high;
  return out;
}

}  // namespace comera::studio
