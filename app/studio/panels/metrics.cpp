// Curves of the shown run in a grid of cards with a common range of steps.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/form/misfit_card.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_over.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/timeline.h"
#include "core/base/error.h"
#include "core/config/metrics.h"

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

// Uses the selected axis; steps if the run has no positions on it.
void use_axis(UiState& ui) {
  const RunView& view = ui.shown();
  PlotView& plots = ui.plots;
  XAxis axis = ui.metrics.axis;
  if (no_axis(view, axis)) axis = XAxis::step;
  plots.axis = axis_of(view, axis);
  plots.clock = axis == XAxis::wall;
  plots.axis_unit = unit_of(axis);
  plots.over_title = view.metric(ui.metrics.over).empty() ? "" : ui.metrics.over;
  if (axis != XAxis::time && axis != XAxis::relative) return;
  // Selects the unit that gives short numbers.
  const double seconds = plots.axis.at(static_cast<double>(view.snapshot->step));
  plots.axis_unit = seconds > 3 * 3600 ? "hours" : seconds > 180 ? "minutes" : "seconds";
  plots.axis.scale /= seconds > 3 * 3600 ? 3600 : seconds > 180 ? 60 : 1;
}

// Selects the x axis, or a metric that replaces it.
void axis_combo(UiState& ui) {
  MetricsGrid& grid = ui.metrics;
  const RunView& view = ui.shown();
  const bool over = !grid.over.empty();
  ImGui::SetNextItemWidth(em(7.4f));
  if (ImGui::BeginCombo("##axis", whole_label(over ? grid.over : title_of(grid.axis)).c_str(), ImGuiComboFlags_HeightLarge)) {
    for (int i = 0; i < kXAxesOfOne; ++i) {
      const auto axis = static_cast<XAxis>(i);
      const char* why = no_axis(view, axis);
      ImGui::BeginDisabled(why != nullptr);
      if (ImGui::Selectable((std::string(title_of(axis)) + "###" + name_of(axis)).c_str(), !over && axis == grid.axis)) {
        grid.axis = axis;
        grid.over.clear();
      }
      ImGui::EndDisabled();
      if (why) tooltip((std::string("This run ") + why).c_str());
    }
    std::vector<std::string> names;
    for (const auto& [name, curve] : view.metrics)
      if (!curve.empty()) names.push_back(name);
    if (choose_over(grid.over, names)) grid.axis = XAxis::step;
    ImGui::EndCombo();
  }
  const char* why = no_axis(view, grid.axis);
  const bool lacks = over && view.metric(grid.over).empty();
  tooltip(lacks  ? ("Drawn over steps: this run has no " + grid.over).c_str()
          : over ? "Each point is a step: the values of both metrics there."
          : why  ? (std::string("Drawn over steps: this run ") + why).c_str()
                 : "The x axis. Time counts training steps only; since start also counts pauses.");
}

void plots_combo(UiState& ui, const std::vector<PlotTile>& all) {
  MetricsGrid& grid = ui.metrics;
  ImGui::SetNextItemWidth(em(6));
  if (ImGui::BeginCombo("##plots", "Plots", ImGuiComboFlags_HeightLarge)) {
    if (!ui.shown().replaced.empty()) {
      ImGui::Checkbox("Discarded branches###replaced", &ui.replaced.shown);
      tooltip("In grey behind the curves: steps that this run trained before it was rolled back. Each branch is kept as a run.");
      ImGui::Separator();
    }
    for (const PlotTile& tile : all) {
      bool on = tile.extra == grid.toggled.contains(tile.id);
      if (ImGui::Checkbox((whole_label(tile.title) + "###plot-" + tile.id).c_str(), &on) && !grid.toggled.erase(tile.id))
        grid.toggled.insert(tile.id);
      if (tile.help) tooltip(tile.help);
    }
    ImGui::EndCombo();
  }
  tooltip("Adds and removes plots. The menu of a plot pins it to the top.");
  ImGui::SameLine(0, em(0.5f));
  ImGui::SetNextItemWidth(em(6.8f));
  const auto name = [](int count) {
    return count == 0 ? std::string("Columns") : std::to_string(count) + (count == 1 ? " column" : " columns");
  };
  if (ImGui::BeginCombo("##columns", name(grid.columns).c_str())) {
    for (int count = 0; count <= kMostColumns; ++count)
      if (ImGui::Selectable((count == 0 ? "As many as fit" : name(count)).c_str(), count == grid.columns)) grid.columns = count;
    ImGui::EndCombo();
  }
  tooltip("Plots per row.");
}

// In very low windows the toolbar is in the menu of each plot.
bool toolbar_folded() { return ImGui::GetMainViewport()->Size.y < em(22); }

void toolbar(UiState& ui, const std::vector<PlotTile>& all) {
  ImGui::AlignTextToFramePadding();
  push_small();
  axis_combo(ui);
  ImGui::SameLine(0, em(0.5f));
  plots_combo(ui, all);
  plot_toolbar(ui.plots);
  beside_or_below(export_button_width());
  export_button(ui, "metrics");
  ImGui::PopFont();
}

// Message and actions after a run diverged.
void diverged_banner(UiState& ui, const std::string& text) {
  banner(Level::error, text);
  const RunView& view = ui.shown();
  const Snapshot& last = *view.snapshot;
  if (last.phase != Phase::diverged) return;
  const char* no_replay = no_past(ui);
  const std::string checkpoint = thousands(static_cast<double>(last.last_checkpoint_step));
  const bool can = ui.store && last.last_checkpoint_step >= 0 && !last.run.empty();
  const char* why = !ui.store || last.run.empty() ? "The run is not stored" : "The run has no checkpoint";
  const auto next = [&](const char* label) { beside_or_below(button_width(label, {.icon = Icon::rewind})); };
  push_small();
  if (button("Go to step###go-to-step", {.icon = Icon::step_back,
                                         .enabled = no_replay == nullptr && last.step > 0,
                                         .tooltip = "Shows the run at the last good step",
                                         .why_not = no_replay ? no_replay : "The run has no good step"}))
    seek(ui, last.step - 1);
  const std::string back = "Roll back to checkpoint " + checkpoint + "###roll-back";
  next(back.c_str());
  if (button(can ? back.c_str() : "Roll back###roll-back",
             {.icon = Icon::rewind,
              .enabled = can,
              .tooltip = "Resumes this run from that checkpoint. The later steps are kept as a discarded branch, in grey behind the curves",
              .why_not = why}))
    roll_back_shown(ui);
  next("Fork with half the rates");
  if (button("Fork with half the rates###fork-slower", {.icon = Icon::fork,
                                                        .primary = true,
                                                        .enabled = can,
                                                        .tooltip = "A new run from that checkpoint with half of each learning rate",
                                                        .why_not = why}))
    fork_shown_slower(ui);
  ImGui::PopFont();
}

// End of a sentence: " (in 12 s)." or ".".
std::string wait_for_eval(const RunView& view) {
  const Snapshot& s = *view.snapshot;
  const double steps = static_cast<double>(view.config.train.eval_every - s.step);
  return steps > 0 && s.steps_per_s > 0 && s.phase == Phase::running ? " (in " + duration(steps / s.steps_per_s) + ")." : ".";
}

// Step of the last edit of the size target; -1 = none.
double target_changed_at(const RunView& view) {
  for (auto edit = view.edits.rbegin(); edit != view.edits.rend(); ++edit)
    if (edit->path.rfind("method.comera.target", 0) == 0) return static_cast<double>(edit->step);
  return -1;
}

std::vector<PlotTile> usual_tiles(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  const Theme& t = theme();
  // Records may be newer than the snapshot, so values are looked up by step only in a replay.
  const double at = ui.replaying() ? static_cast<double>(s.step) : INFINITY;
  const ComeraConfig& comera = ui.config().method.comera;
  const bool tensorised = view.uses("model.tt");
  const Curve& entries = view.metric("entries");
  const double bytes_an_entry = s.size.bytes_an_entry();
  const bool waiting = view.live && !view.ended();
  const std::string eval_wait =
      waiting && view.config.train.eval_every > 0
          ? "The first evaluation comes at step " + thousands(static_cast<double>(view.config.train.eval_every)) + wait_for_eval(view)
          : "This run was not evaluated.";
  const bool again = s.phase == Phase::preparing && !s.message.empty();  // a fork between checkpoints
  const char* step_wait = again       ? "The steps before the fork are computed again; the first new step draws the first point."
                          : waiting   ? "The first step draws the first point."
                          : view.live ? "The run ended before its first step."
                                      : "Nothing was stored for this run.";
  std::vector<PlotTile> tiles = {
      {.id = "loss",
       .title = find_metric("train_loss")->title,
       .help = "Mean cross-entropy of each batch. Dashed: the loss target of the late stage.",
       .value = value_at(view.metric("train_loss"), at),
       .lines = {{&view.metric("train_loss"), find_metric("train_loss")->symbol, t.series[0], true}},
       .target_value = tensorised && s.late ? comera.loss_target : 0,
       .empty = step_wait,
       .can_log = true},
      {.id = "accuracy",
       .title = "Accuracy",
       .help = "Share of validation examples with a correct prediction. Behind it: the same of training batches.",
       .value = percent_at(view.metric("val_accuracy"), at),
       .lines = {{&view.metric("train_accuracy"), find_metric("train_accuracy")->symbol, with_alpha(t.series[7], 0.7f), true, false, 100},
                 {&view.metric("val_accuracy"), find_metric("val_accuracy")->symbol, t.series[2], false, true, 100}},
       .empty = step_wait,
       .unit = "%"},
      {.id = "val_loss",
       .title = find_metric("val_loss")->title,
       .help = find_metric("val_loss")->help,
       .value = value_at(view.metric("val_loss"), at),
       .lines = {{&view.metric("val_loss"), find_metric("val_loss")->symbol, t.series[2], false, true}},
       .empty = eval_wait,
       .can_log = true},
      {.id = "size",
       .title = "Size of the tensor trains",
       .help = "MiB of the live entries. Dashed: the size target.",
       .value = entries.empty() ? "" : mebibytes(entries.at(at) * bytes_an_entry),
       .lines = {{&entries, find_metric("entries")->symbol, t.series[1], false, false, bytes_an_entry / (1 << 20)}},
       .target = &view.metric("target_entries"),
       .target_scale = bytes_an_entry / (1 << 20),
       .ghost_step = target_changed_at(view),
       .empty = step_wait,
       .unit = "MiB",
       .from_zero = true},
      {.id = "step_ms",
       .title = find_metric("step_ms")->title,
       .help = find_metric("step_ms")->help,
       .value = view.metric("step_ms").empty() ? "" : significant(s.last.step_ms, 3) + " ms",
       .lines = {{&view.metric("step_ms"), find_metric("step_ms")->symbol, t.series[6], true}},
       .empty = step_wait,
       .unit = "ms",
       .from_zero = true},
  };
  if (tensorised) {
    tiles.push_back({.id = "lr",
                     .title = "Learning rates",
                     .help = "At each step, of TT cores, rank vectors and other parameters.",
                     .lines = {{&view.metric("lr_core"), find_metric("lr_core")->symbol, t.series[0]},
                               {&view.metric("lr_rank"), find_metric("lr_rank")->symbol, t.series[1]},
                               {&view.metric("lr_rest"), find_metric("lr_rest")->symbol, t.series[3]}},
                     .empty = step_wait,
                     .from_zero = true});
  } else {  // dense runs have no plot of the size, and a single learning rate
    std::erase_if(tiles, [](const PlotTile& tile) { return std::string_view(tile.id) == "size"; });
    tiles.push_back({.id = "lr",
                     .title = "Learning rate",
                     .help = "Learning rate at each step.",
                     .value = value_at(view.metric("lr_rest"), at, 3),
                     .lines = {{&view.metric("lr_rest"), "rate", t.series[0]}},
                     .empty = step_wait,
                     .from_zero = true});
  }
  return tiles;
}

std::vector<PlotTile> all_tiles(UiState& ui) {
  const RunView& view = ui.shown();
  std::vector<PlotTile> tiles = usual_tiles(ui);
  if (const Curve& step_ms = view.metric("step_ms"); !step_ms.empty()) {
    static const Curve kNotComputed;  // placeholder until the plot is shown
    const double ms = ui.replaying() ? step_ms.at(static_cast<double>(ui.snapshot().step)) : step_ms.last();
    tiles.push_back({.id = "speed",
                     .title = "Speed",
                     .help = "Steps per second, without evaluation and checkpoints.",
                     .value = ms > 0 ? significant(1000 / ms, 3) + " it/s" : "",
                     .lines = {{ui.metrics.toggled.contains("speed") ? &ui.plots.per_second(step_ms) : &kNotComputed, "speed",
                                theme().series[6], true}},
                     .unit = "it/s",
                     .from_zero = true,
                     .extra = true});
  }
  for (const auto& [name, curve] : view.metrics) {
    const MetricInfo info = describe_metric(name);
    if (curve.empty() || info.main) continue;
    const double at = ui.replaying() ? static_cast<double>(ui.snapshot().step) : INFINITY, value = curve.at(at);
    const bool smooth = find_metric(name) ? info.noisy : curve.size() > 200;
    tiles.push_back({.id = name.c_str(),
                     .title = info.title,
                     .help = info.help,
                     .value = *info.unit && std::isfinite(value) ? significant(value * info.factor, 4) : value_at(curve, at),
                     .lines = {{&curve, name.c_str(), theme().series[4], smooth, false, info.factor}},
                     .unit = info.unit,
                     .extra = true});
  }
  return tiles;
}

PlotCells cells_of(const MetricsGrid& grid, const std::string& id) {
  const auto found = grid.cells.find(id);
  return found == grid.cells.end() ? PlotCells{} : found->second;
}

void set_cells(MetricsGrid& grid, const std::string& id, PlotCells cells) {
  if (cells == PlotCells{})
    grid.cells.erase(id);
  else
    grid.cells[id] = cells;
}

// Menu items for the size of a plot, in cells.
void size_items(MetricsGrid& grid, const std::string& id) {
  PlotCells cells = cells_of(grid, id);
  const auto item = [](const char* label, const char* name, int& count, int by, int most) {
    if (ImGui::MenuItem(label, nullptr, false, count + by >= 1 && count + by <= most)) count += by;
    name_item(name);
  };
  item("Wider", "wider", cells.columns, 1, kMostColumns);
  item("Narrower", "narrower", cells.columns, -1, kMostColumns);
  item("Taller", "higher", cells.rows, 1, kMostRows);
  item("Shorter", "lower", cells.rows, -1, kMostRows);
  set_cells(grid, id, cells);
}

// Grip in the lower right corner of a plot: dragging it changes the number of cells. `cell`: size of a cell with its gap.
void draw_grip(MetricsGrid& grid, const std::string& id, ImVec2 cell, int columns) {
  ImGuiWindow* card = ImGui::GetCurrentWindow();
  const float side = card->WindowPadding.x;  // in the padding of the card, outside its content
  const ImRect all = card->Rect(), box({all.Max.x - side, all.Max.y - side}, all.Max);
  ImGui::PushClipRect(all.Min, all.Max, false);
  const ImGuiID button = ImGui::GetID("###resize");
  bool hovered = false, held = false;
  if (ImGui::ItemAdd(box, button, nullptr, ImGuiItemFlags_NoNav)) ImGui::ButtonBehavior(box, button, &hovered, &held);
  name_item("resize:" + id);
  tooltip("Drag to resize this plot; its menu does the same.");
  if (held || hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNWSE);
  if (held || hovered || ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows)) {
    const float edge = side * 0.2f;
    card->DrawList->AddTriangleFilled({all.Max.x - edge, box.Min.y}, {all.Max.x - edge, all.Max.y - edge}, {box.Min.x, all.Max.y - edge},
                                      held || hovered ? theme().accent : with_alpha(theme().dim, 0.6f));
  }
  ImGui::PopClipRect();
  if (!held || !ImGui::IsMouseDragging(0)) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const auto reached = [](float length, float of, int most) { return std::clamp(static_cast<int>(std::lround(length / of)), 1, most); };
  set_cells(grid, id, {reached(mouse.x - all.Min.x, cell.x, columns), reached(mouse.y - all.Min.y, cell.y, kMostRows)});
}

std::vector<PlotTile> shown_tiles(UiState& ui) {
  MetricsGrid& grid = ui.metrics;
  std::vector<PlotTile> tiles = all_tiles(ui);
  std::erase_if(tiles, [&](const PlotTile& tile) { return tile.extra != grid.toggled.contains(tile.id); });
  if (const Curve& over = ui.shown().metric(grid.over); !over.empty())
    for (PlotTile& tile : tiles)
      for (PlotLine& line : tile.lines) line.over = &over;
  add_replaced(ui, tiles);
  std::stable_partition(tiles.begin(), tiles.end(), [&](const PlotTile& tile) { return grid.pinned.contains(tile.id); });
  for (PlotTile& tile : tiles)
    tile.menu = [&ui, id = std::string(tile.id), title = std::string(tile.title)] {
      MetricsGrid& of = ui.metrics;
      ImGui::Separator();
      const bool pinned = of.pinned.contains(id), alone = of.alone == id;
      if (ImGui::MenuItem("Pin to the top###pin", nullptr, pinned) && !of.pinned.erase(id)) of.pinned.insert(id);
      if (ImGui::MenuItem("Fill the panel###alone", nullptr, alone)) of.alone = alone ? "" : id;
      if (!alone) size_items(of, id);
      if (ImGui::MenuItem("Remove###remove") && !of.toggled.erase(id)) of.toggled.insert(id);
      if (ImGui::MenuItem("Export ...###export", key_text(ui.settings.keys.of("file.export")).c_str())) open_export(ui, "metrics", title);
      if (toolbar_folded() && ImGui::BeginMenu("All plots###all-plots")) {
        toolbar(ui, all_tiles(ui));
        ImGui::EndMenu();
      }
    };
  const bool has_alone = std::any_of(tiles.begin(), tiles.end(), [&](const PlotTile& tile) { return grid.alone == tile.id; });
  if (has_alone) std::erase_if(tiles, [&](const PlotTile& tile) { return grid.alone != tile.id; });
  return tiles;
}

}  // namespace

void draw_metrics(UiState& ui) {
  ui.curves_drawn = ImGui::GetFrameCount();
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  if (!view.config_problem.empty())
    banner(Level::warning, "The settings of this run cannot be read, so its sizes and ranks are not known: " + view.config_problem);
  if (ui.opening()) {
    if (begin_card("metrics-empty")) empty_state(Icon::clock, "Reading the run", "The curves appear in a moment.");
    end_card();
    return;
  }
  if (!ui.has_run()) {
    if (begin_card("metrics-empty") &&
        empty_state(Icon::chart, "No run yet", "Loss, accuracy, size and speed are drawn here while a run trains.", "Run the demo"))
      start_preset(ui, "demo");
    end_card();
    return;
  }
  if (s.phase == Phase::failed || s.phase == Phase::diverged) {
    if (s.error_code == static_cast<int>(ErrorCode::memory))
      draw_failed_misfit(ui);
    else
      diverged_banner(ui, failure_text(s));
  }
  if (s.phase != Phase::failed) ui.no_room.of = nullptr;
  if (!toolbar_folded()) toolbar(ui, all_tiles(ui));
  use_axis(ui);
  std::vector<PlotTile> tiles = shown_tiles(ui);
  if (tiles.empty()) {
    if (empty_state(Icon::chart, "All plots are removed", "Add plots with Plots above.", "Show default plots", Icon::rewind))
      ui.metrics.toggled.clear();
    return;
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const int fitting = space.x > em(66) ? 3 : space.x > em(34) ? 2 : 1;
  const int wanted = ui.metrics.columns > 0 ? ui.metrics.columns : fitting;
  int most = 0;  // sum of the widths in cells
  std::vector<PlotCells> cells;
  for (const PlotTile& tile : tiles) {
    cells.push_back(tiles.size() == 1 ? PlotCells{} : cells_of(ui.metrics, tile.id));
    most += std::min(cells.back().columns, wanted);
  }
  const int columns = std::min(wanted, most);
  int rows = 1;
  const std::vector<PlotPlace> places = place_plots(cells, columns, rows);
  // Plots have a minimum height, beyond which the grid scrolls; in the smallest windows one plot fills the panel.
  const float least = toolbar_folded() ? std::clamp(space.y, em(6), em(8.5f)) : em(8.5f);
  const float height = std::max(least, std::floor((space.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  ImGui::BeginChild("grid", {0, 0});
  const float inner = ImGui::GetContentRegionAvail().x;  // excludes the scroll bar
  const float width = std::floor((inner - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns));
  const ImVec2 origin = ImGui::GetCursorPos();
  const auto extent = [gap](int count, float of) { return static_cast<float>(count) * (of + gap); };
  for (size_t i = 0; i < tiles.size(); ++i) {
    const PlotPlace& at = places[i];
    if (tiles.size() > 1)
      tiles[i].corner = [&ui, id = std::string(tiles[i].id), cell = ImVec2(width + gap, height + gap), columns] {
        draw_grip(ui.metrics, id, cell, columns);
      };
    ImGui::SetCursorPos({origin.x + extent(at.column, width), origin.y + extent(at.row, height)});
    plot_tile(ui.plots, tiles[i], view.marks, {extent(at.cells.columns, width) - gap, extent(at.cells.rows, height) - gap});
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

namespace {

// Chart of the selected steps, else of the visible steps.
Chart metric_chart(UiState& ui, const PlotTile& tile) {
  PlotView& view = ui.plots;
  const StepRange& selected = ui.timeline.selection;
  if (!selected.any())
    return chart_of(tile.id, figure_of(view, tile, ui.snapshot().name + ", step " + thousands(static_cast<double>(ui.snapshot().step))));
  const double low = view.x_low, high = view.x_high;
  view.x_low = static_cast<double>(selected.first);
  view.x_high = static_cast<double>(selected.last);
  Chart chart =
      chart_of(tile.id, figure_of(view, tile, ui.snapshot().name + ", steps " + thousands(view.x_low) + " to " + thousands(view.x_high)));
  view.x_low = low;
  view.x_high = high;
  return chart;
}

}  // namespace

std::vector<ListedChart> metrics_charts(UiState& ui) {
  std::vector<ListedChart> out;
  use_axis(ui);
  for (const PlotTile& tile : shown_tiles(ui))
    if (std::any_of(tile.lines.begin(), tile.lines.end(), [](const PlotLine& line) { return line.curve && !line.curve->empty(); }))
      out.push_back({tile.id, tile.title, [&ui, tile] { return metric_chart(ui, tile); }});
  return out;
}

}  // namespace comera::studio
