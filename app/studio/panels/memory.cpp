// Memory by purpose: now, at its peak, as planned before step 1, and over the steps.
#include <implot.h>

#include <algorithm>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/plots.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

void table(const Snapshot& s) {
  const bool planned = s.memory_planned.total() > 0;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.4f), em(0.05f)));
  const bool open = ImGui::BeginTable("purposes", planned ? 4 : 3, ImGuiTableFlags_SizingStretchProp);
  ImGui::PopStyleVar();
  if (!open) return;
  ImGui::TableSetupColumn("Purpose", ImGuiTableColumnFlags_WidthStretch, 1.5f);
  ImGui::TableSetupColumn("Now", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("Peak", ImGuiTableColumnFlags_WidthStretch, 1);
  if (planned) ImGui::TableSetupColumn("Planned", ImGuiTableColumnFlags_WidthStretch, 1);
  const auto number = [](double bytes, ImU32 color) {
    ImGui::PushFont(fonts().numbers, 0);
    text_right(mebibytes(bytes), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    ImGui::PopFont();
  };
  ImGui::TableNextRow();
  for (int column = 0; column < ImGui::TableGetColumnCount(); ++column) {
    ImGui::TableSetColumnIndex(column);
    if (column == 0)
      text_dim(ImGui::TableGetColumnName(column));
    else
      text_right(ImGui::TableGetColumnName(column), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
  }
  for (int i = 0; i < kPurposes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (s.memory_now.bytes[at] == 0 && s.memory_peak.bytes[at] == 0 && s.memory_planned.bytes[at] == 0) continue;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    color_mark(look.color);
    text_fit(look.title, ImGui::GetContentRegionAvail().x, theme().text);
    tooltip(look.help);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_now.bytes[at]), theme().text);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_peak.bytes[at]), theme().text);
    if (!planned) continue;
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_planned.bytes[at]), theme().dim);
  }
  ImGui::EndTable();
}

// Stacked areas over the steps. Memory changes seldom, so the points are few.
void history(UiState& ui, const RunView& view) {
  if (!ImPlot::BeginPlot(
          "##history", ImGui::GetContentRegionAvail(),
          ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend | ImPlotFlags_NoBoxSelect))
    return;
  std::vector<double> x = view.memory[0].x();
  const double end = std::max(static_cast<double>(view.snapshot->step), x.empty() ? 1.0 : x.back());
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_X1, ui.plots.x_low, ui.plots.x_high, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%g MiB");
  const double top = static_cast<double>(std::max(view.snapshot->memory_peak.total(), view.snapshot->memory_now.total())) / (1 << 20);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(0.01, top * 1.08), ImPlotCond_Always);
  ImPlot::SetupFinish();
  // As stairs: each value holds until the next point.
  std::vector<double> steps, low, high;
  for (size_t i = 0; i < x.size(); ++i) {
    steps.push_back(x[i]);
    steps.push_back(i + 1 < x.size() ? x[i + 1] : end);
  }
  low.assign(steps.size(), 0);
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    const std::vector<double>& bytes = view.memory[static_cast<size_t>(purpose)].y();
    high = low;
    for (size_t i = 0; i < bytes.size() && 2 * i + 1 < high.size(); ++i) {
      high[2 * i] += bytes[i] / (1 << 20);
      high[2 * i + 1] += bytes[i] / (1 << 20);
    }
    ImPlotSpec spec;
    const PurposeLook look = look_of(static_cast<Purpose>(purpose));
    spec.FillColor = vec(look.color);
    spec.FillAlpha = 0.85f;
    ImPlot::PlotShaded(look.title, steps.data(), low.data(), high.data(), static_cast<int>(steps.size()), spec);
    low = high;
  }
  ImPlot::PushPlotClipRect();
  draw_replay_line(ui.plots);
  ImPlot::PopPlotClipRect();
  ImPlot::EndPlot();
}

}  // namespace

void draw_memory(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  if (begin_card("memory-card")) {
    if (s.memory_now.total() == 0 && s.memory_peak.total() == 0) {
      empty_state(
          Icon::chart, "No memory yet",
          ui.has_run() && !view.live ? "Memory was not recorded for this run." : "Every byte the training takes appears here by purpose.");
      end_card();
      return;
    }
    const double now = static_cast<double>(s.memory_now.total()), peak = static_cast<double>(s.memory_peak.total());
    card_title("Memory by purpose",
               "Every byte that training holds, counted by its own allocator. Planned: known from a dry run before step 1.");
    std::string totals = "peak " + mebibytes(peak);
    if (s.memory_planned.total() > 0) totals += ", planned " + mebibytes(static_cast<double>(s.memory_planned.total()));
    push_numbers(1.1f);
    ImGui::TextUnformatted(mebibytes(now).c_str());
    ImGui::PopFont();
    ImGui::SameLine(0, em(0.6f));
    push_small();
    text_fit(totals, std::max(1.0f, ImGui::GetContentRegionAvail().x - export_button_width() - em(0.6f)), theme().dim);
    ImGui::PopFont();
    ImGui::SameLine();
    export_button(ui, "memory");
    purpose_bar(s.memory_now, std::max(now, peak), em(0.8f));
    push_small();
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool beside = space.x > em(52), under = !beside && space.y > em(22);
    if (beside) {
      ImGui::BeginChild("numbers", {space.x * 0.52f, 0});
      table(s);
      ImGui::EndChild();
      ImGui::SameLine();
      history(ui, view);
    } else {
      table(s);
      if (under) history(ui, view);
    }
    ImGui::PopFont();
  }
  end_card();
}

std::vector<Chart> memory_charts(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  std::vector<Chart> out;
  if (!view.memory[0].empty()) {
    Figure past{.title = "Memory by purpose", .note = note, .unit = "MiB", .from_zero = true};
    std::vector<double> low(view.memory[0].size(), 0);
    for (int purpose = 0; purpose < kPurposes; ++purpose) {
      const Curve& bytes = view.memory[static_cast<size_t>(purpose)];
      FigureLine area{.label = look_of(static_cast<Purpose>(purpose)).title,
                      .color = look_of(static_cast<Purpose>(purpose)).color,
                      .x = bytes.x(),
                      .y = low,
                      .base = low,
                      .stairs = true};
      for (size_t i = 0; i < area.y.size() && i < bytes.size(); ++i) area.y[i] += bytes.y()[i] / (1 << 20);
      low = area.y;
      // The last value holds to the newest step.
      area.x.push_back(std::max(area.x.back(), static_cast<double>(view.snapshot->step)));
      area.y.push_back(area.y.back());
      area.base.push_back(area.base.back());
      past.lines.push_back(std::move(area));
    }
    out.push_back(chart_of("memory", std::move(past)));
  }
  if (s.memory_now.total() > 0) {
    Figure now{.title = "Memory now", .note = note, .unit = "MiB", .x_title = "purpose"};
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      now.bars.push_back({look_of(static_cast<Purpose>(purpose)).title, 0, 0,
                          static_cast<double>(s.memory_now.bytes[static_cast<size_t>(purpose)]) / (1 << 20),
                          look_of(static_cast<Purpose>(purpose)).color});
    out.push_back(chart_of("memory-now", std::move(now)));
  }
  return out;
}

}  // namespace comera::studio
