#include "app/studio/ranks/sizes.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/rank_history.h"
#include "app/studio/theme.h"

namespace comera::studio {
namespace {

constexpr size_t kModules = 8;  // the number of series colours

}  // namespace

void draw_sizes(UiState& ui, ImVec2 size) {
  const RunView& view = ui.shown();
  const Snapshot& s = *view.snapshot;
  const double bytes = s.size.bytes_an_entry(), newest = static_cast<double>(s.step);
  const double low = std::max(0.0, ui.plots.x_low), high = std::max(low + 1, std::min(ui.plots.x_high, newest));
  const std::vector<double> steps = rank_steps(view, low, high, std::max<size_t>(16, static_cast<size_t>(size.x)));
  const std::vector<ModuleSize> modules = module_sizes(view, s.ranks, steps, kModules);
  // Legend of the modules, as many as fit.
  const ImVec2 line = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  float x = line.x;
  for (size_t i = 0; i < modules.size(); ++i) {
    const float width = ImGui::CalcTextSize(modules[i].name.c_str()).x;
    if (x + em(0.9f) + width > line.x + size.x) break;
    list->AddCircleFilled({x + em(0.3f), line.y + ImGui::GetTextLineHeight() / 2}, em(0.28f), theme().series[i]);
    list->AddText({x + em(0.8f), line.y}, theme().dim, modules[i].name.c_str());
    x += width + em(1.7f);
  }
  ImGui::Dummy({size.x, ImGui::GetTextLineHeight()});
  const ImVec2 box(size.x, std::max(em(3), size.y - ImGui::GetTextLineHeight() - ImGui::GetStyle().ItemSpacing.y));
  if (!ImPlot::BeginPlot("##sizes", box, kPlotFlags | ImPlotFlags_NoBoxSelect)) return;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_X1, ui.plots.x_low, ui.plots.x_high, ImPlotCond_Always);
  static char unit[] = " MiB";
  ImPlot::SetupAxisFormat(ImAxis_X1, axis_label);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label, unit);
  // Step functions: each value holds until the next point.
  const size_t points = steps.size();
  std::vector<double> at, under, over;
  for (size_t i = 0; i < points; ++i) {
    at.push_back(steps[i]);
    at.push_back(i + 1 < points ? steps[i + 1] : steps[i]);
  }
  under.assign(at.size(), 0);
  std::vector<std::vector<double>> edges;
  for (const ModuleSize& module : modules) {
    over = under;
    for (size_t i = 0; i < points; ++i) {
      over[2 * i] += module.entries[i] * bytes / (1 << 20);
      over[2 * i + 1] += module.entries[i] * bytes / (1 << 20);
    }
    edges.push_back(over);
    under = over;
  }
  const double top = under.empty() ? 0 : *std::max_element(under.begin(), under.end());
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(1e-6, top * 1.08), ImPlotCond_Always);
  setup_y_ticks(0, std::max(1e-6, top * 1.08), box.y);
  ImPlot::SetupFinish();
  under.assign(at.size(), 0);
  for (size_t i = 0; i < edges.size(); ++i) {
    ImPlotSpec spec;
    spec.FillColor = vec(theme().series[i]);
    spec.FillAlpha = 0.85f;
    ImPlot::PlotShaded(modules[i].name.c_str(), at.data(), under.data(), edges[i].data(), static_cast<int>(at.size()), spec);
    under = edges[i];
  }
  ImPlot::PushPlotClipRect();
  draw_timeline_marks(ui.plots);
  ImPlot::PopPlotClipRect();
  std::vector<Copied> copied;
  if (ImPlot::IsPlotHovered()) {
    ui.plots.hovered = std::round(ImPlot::GetPlotMousePos().x);
    const auto after = std::upper_bound(steps.begin(), steps.end(), ui.plots.hovered);
    const auto i = static_cast<size_t>(std::max<std::ptrdiff_t>(1, after - steps.begin())) - 1;
    const bool known = after != steps.begin() && ui.plots.hovered <= newest;
    std::string text = "step " + thousands(ui.plots.hovered);
    for (const ModuleSize& module : modules)
      if (known) text += "\n" + module.name + "\t" + mebibytes(module.entries[i] * bytes);
    if (known) copied = {{"Copy values", text}};
    if (known && ImGui::BeginTooltip()) {
      text_dim("step " + thousands(ui.plots.hovered));
      for (size_t m = modules.size(); m-- > 0;) {
        color_mark(theme().series[m]);
        text_dim(modules[m].name + "  " + mebibytes(modules[m].entries[i] * bytes));
      }
      ImGui::EndTooltip();
    }
  }
  ImPlot::EndPlot();
  name_item("chart:size-by-module");
  ImGui::PushID("sizes");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
}

Figure sizes_figure(const RunView& view, const std::string& note) {
  constexpr size_t kPoints = 2000;
  const Snapshot& s = *view.snapshot;
  Figure figure{.title = kSizesTitle, .note = note, .unit = "MiB", .from_zero = true};
  const double bytes = s.size.bytes_an_entry();
  const std::vector<double> steps = rank_steps(view, 0, static_cast<double>(s.step), kPoints);
  const std::vector<ModuleSize> modules = module_sizes(view, s.ranks, steps, kModules);
  std::vector<double> under(steps.size(), 0);
  for (size_t m = 0; m < modules.size(); ++m) {
    FigureLine area{.label = modules[m].name, .color = theme().series[m], .x = steps, .y = under, .base = under, .stairs = true};
    for (size_t i = 0; i < steps.size(); ++i) area.y[i] += modules[m].entries[i] * bytes / (1 << 20);
    under = area.y;
    figure.lines.push_back(std::move(area));
  }
  return figure;
}

}  // namespace comera::studio
