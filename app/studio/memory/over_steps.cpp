#include "app/studio/memory/over_steps.h"

#include <implot.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

// Scope of the areas: training, the whole process, or all processes on the device or machine.
enum Scope { training, process, everything };

Scope scope_of(const UiState& ui) {
  return ui.memory_scope >= everything ? everything : ui.memory_scope == process && !has_own_memory(ui.snapshot()) ? process : training;
}

double axis_top(const MemoryHistory& past, const RunView& view, Scope scope) {
  const Snapshot& s = *view.snapshot;
  double top = static_cast<double>(std::max(s.memory_peak.total(), s.memory_now.total()));
  if (scope >= process) top = std::max(top, past.process_top);
  if (scope >= everything) top = std::max(top, past.used_top);
  return std::max(0.01, top / (1 << 20) * 1.08);
}

// Why a part of the plot is missing; "" = complete.
std::string not_recorded(const MemoryHistory& past, Scope scope) {
  if (scope == everything && past.used.empty()) return "Memory of all processes was not recorded.";
  if (scope == process && past.process.x.empty()) return "Memory of the rest of the process was not recorded.";
  return "";
}

void scope_choice(UiState& ui) {
  static constexpr const char* kOfMachine[] = {"Training", "Process", "Machine"};
  static constexpr const char* kOfDevice[] = {"Training", "Device"};
  const bool own = has_own_memory(ui.snapshot());
  int chosen = own ? scope_of(ui) == everything : static_cast<int>(scope_of(ui));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.4f), em(0.05f)));
  if (segmented("memory-scope", own ? kOfDevice : kOfMachine, own ? 2 : 3, chosen))
    ui.memory_scope = own && chosen == 1 ? everything : chosen;
  ImGui::PopStyleVar();
}

// Lines for the tooltip and the clipboard: "TT cores\t1.2 MiB", the topmost area first.
std::vector<std::pair<ImU32, std::string>> lines_at(const UiState& ui, double step, Scope scope) {
  const MemoryAt at = memory_at(ui.shown(), step);
  std::vector<std::pair<ImU32, std::string>> out;
  if (std::isfinite(at.used) && scope == everything)
    out.emplace_back(theme().text, memory_level_title(ui.snapshot()) + "\t" + exact_bytes(at.used) +
                                       (std::isfinite(at.total) ? " of " + mebibytes(at.total) : ""));
  if (std::isfinite(at.rest) && scope >= process) out.emplace_back(rest_of_process_color(), "Rest of the process\t" + exact_bytes(at.rest));
  for (int i = kPurposes - 1; i >= 0; --i)
    if (const int64_t bytes = at.purposes.bytes[static_cast<size_t>(i)]; bytes > 0)
      out.emplace_back(look_of(static_cast<Purpose>(i)).color,
                       std::string(look_of(static_cast<Purpose>(i)).title) + "\t" + exact_bytes(static_cast<double>(bytes)));
  out.emplace_back(0, "Training\t" + exact_bytes(at.training));
  return out;
}

void draw_area(const char* label, const MemoryHistory::Area& area, ImU32 color, float alpha) {
  if (area.x.empty()) return;
  std::vector<double> x, low, high;  // as a step function
  for (size_t i = 0; i < area.x.size(); ++i) {
    for (const double at : {area.x[i], i + 1 < area.x.size() ? area.x[i + 1] : area.x[i]}) {
      x.push_back(at);
      low.push_back(area.low[i] / (1 << 20));
      high.push_back(area.high[i] / (1 << 20));
    }
  }
  ImPlotSpec spec;
  spec.FillColor = vec(color);
  spec.FillAlpha = alpha;
  ImPlot::PlotShaded(label, x.data(), low.data(), high.data(), static_cast<int>(x.size()), spec);
}

// Area between the memory of this process and that of all processes.
MemoryHistory::Area of_others(const RunView& view, const MemoryHistory& past) {
  MemoryHistory::Area out{past.used_x, {}, past.used};
  for (size_t i = 0; i < past.used_x.size(); ++i) {
    const MemoryAt at = memory_at(view, past.used_x[i]);
    out.low.push_back(std::min(past.used[i], at.training + (std::isfinite(at.rest) ? at.rest : 0)));
  }
  return out;
}

// On a GPU the memory of this process beyond training is not known.
const char* others_title(const Snapshot& s) { return has_own_memory(s) ? "Context, libraries, other processes" : "Other processes"; }

void draw_level(const MemoryHistory& past) {
  std::vector<double> mebi = past.used;
  for (double& bytes : mebi) bytes /= 1 << 20;
  ImPlotSpec spec;
  spec.LineColor = vec(theme().text);
  spec.LineWeight = std::max(1.0f, em(0.11f));
  ImPlot::PlotStairs("##used", past.used_x.data(), mebi.data(), static_cast<int>(mebi.size()), spec);
}

}  // namespace

MemoryAt memory_around(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  MemoryAt at = memory_at(ui.shown(), ui.replaying() ? static_cast<double>(s.step) : INFINITY);
  const RunView& view = ui.shown();
  if (!ui.replaying() && view.live && !view.ended() && !has_own_memory(s) && ui.process_bytes > 0)
    at.rest = static_cast<double>(std::max<int64_t>(0, ui.process_bytes - s.memory_now.total()));
  return at;
}

std::string memory_level_title(const Snapshot& s) { return has_own_memory(s) ? "Device, all processes" : "Machine, all processes"; }
ImU32 rest_of_process_color() { return theme().dim; }

const char* memory_figure_title(const UiState& ui) { return scope_of(ui) == training ? "Memory by purpose" : "Memory over time"; }

Figure memory_figure(const UiState& ui, std::string note) {
  const RunView& view = ui.shown();
  const Scope scope = scope_of(ui);
  const MemoryHistory past = memory_history(view, 0, INFINITY, INT_MAX / 8);
  Figure figure{.title = memory_figure_title(ui), .note = std::move(note), .unit = "MiB", .from_zero = true};
  const auto mebi = [](std::vector<double> bytes) {
    for (double& value : bytes) value /= 1 << 20;
    return bytes;
  };
  const auto add = [&](const std::string& label, Color color, const MemoryHistory::Area& area) {
    if (area.x.empty()) return;
    figure.lines.push_back({.label = label, .color = color, .x = area.x, .y = mebi(area.high), .base = mebi(area.low), .stairs = true});
  };
  for (size_t i = 0; i < past.purposes.size(); ++i)
    add(look_of(static_cast<Purpose>(i)).title, look_of(static_cast<Purpose>(i)).color, past.purposes[i]);
  if (scope >= process) add("Rest of the process", rest_of_process_color(), past.process);
  if (scope == everything && !past.used.empty()) {
    add(others_title(ui.snapshot()), theme().pressed, of_others(view, past));
    figure.lines.push_back(
        {.label = memory_level_title(ui.snapshot()), .color = theme().text, .x = past.used_x, .y = mebi(past.used), .stairs = true});
  }
  return figure;
}

void draw_memory_plot(UiState& ui) {
  const RunView& view = ui.shown();
  const Scope scope = scope_of(ui);
  PlotView& plots = ui.plots;
  const MemoryHistory past = memory_history(view, plots.x_low, plots.x_high, static_cast<int>(ImGui::GetContentRegionAvail().x));
  ImGui::BeginGroup();  // a group, so that callers can place it next to other items
  if (ImGui::GetContentRegionAvail().y > em(9)) {
    scope_choice(ui);
    ImGui::SameLine(0, em(0.8f));
    const std::string missing = not_recorded(past, scope);
    text_fit(!missing.empty()      ? missing
             : scope == everything ? std::string("Line: all processes. Below it: ") + others_title(ui.snapshot()) + "."
             : scope == process    ? std::string("Top: rest of the process.")
                                   : std::string("Memory of training by purpose."),
             std::max(1.0f, ImGui::GetContentRegionAvail().x), theme().dim);
    if (!missing.empty()) name_item("says:" + missing);
  }
  const float height = ImGui::GetContentRegionAvail().y;
  std::vector<Copied> copied;
  if (!ImPlot::BeginPlot("##history", ImGui::GetContentRegionAvail(), kPlotFlags | ImPlotFlags_NoBoxSelect)) {
    ImGui::EndGroup();
    return;
  }
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_X1, plots.x_low, plots.x_high, ImPlotCond_Always);
  static char unit[] = " MiB";
  ImPlot::SetupAxisFormat(ImAxis_X1, axis_label);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label, unit);
  const double top = axis_top(past, view, scope);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, top, ImPlotCond_Always);
  setup_y_ticks(0, top, height);
  ImPlot::SetupFinish();
  for (size_t purpose = 0; purpose < past.purposes.size(); ++purpose)
    draw_area(look_of(static_cast<Purpose>(purpose)).title, past.purposes[purpose], look_of(static_cast<Purpose>(purpose)).color, 0.85f);
  if (scope >= process) draw_area("##rest", past.process, rest_of_process_color(), 0.55f);
  if (scope == everything && !past.used.empty()) {
    draw_area("##others", of_others(view, past), theme().pressed, 0.6f);
    draw_level(past);
  }
  ImPlot::PushPlotClipRect();
  draw_timeline_marks(plots);
  ImPlot::PopPlotClipRect();
  if (ImPlot::IsPlotHovered()) {
    const double newest = static_cast<double>(view.snapshot->step);
    plots.hovered = std::clamp(std::round(ImPlot::GetPlotMousePos().x), 0.0, newest);
    std::string values;
    const std::string at = "step " + thousands(plots.hovered);
    const auto lines = lines_at(ui, plots.hovered, scope);
    if (ImGui::BeginTooltip()) {
      text_dim(at);
      for (const auto& [color, text] : lines) {
        if (color != 0) color_mark(color);
        std::string shown = text;
        std::replace(shown.begin(), shown.end(), '\t', ' ');
        ImGui::TextUnformatted(shown.c_str());
      }
      ImGui::EndTooltip();
    }
    for (const auto& [color, text] : lines) values += "\n" + text;
    const bool asked = ImGui::IsMouseReleased(ImGuiMouseButton_Right);  // builds the CSV only when the menu opens
    copied = {{"Copy value", mebibytes(memory_at(view, plots.hovered).training)},
              {"Copy values", at + values},
              {"Copy data", asked ? figure_csv(memory_figure(ui, "")) : ""}};
  }
  ImPlot::EndPlot();
  name_item("chart:memory");
  ImGui::PushID("history");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
  ImGui::EndGroup();
}

}  // namespace comera::studio
