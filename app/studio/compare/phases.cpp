// Phase times: one bar per run on a common scale, and each phase compared with the baseline.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/compare/phase_times.h"
#include "app/studio/compare/run_bars.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

std::string mean_text(double ms) { return significant(ms, 4) + " ms"; }

std::string part_text(const StepPart& look, const PhaseTimes& times) {
  char share[32];
  std::snprintf(share, sizeof share, ", %.1f %% of the step", 100 * times.*look.ms / times.whole);
  return std::string(look.title) + "  " + mean_text(times.*look.ms) + (times.whole > 0 ? share : "");
}

// Bar of a run with the parts of a step; without times, a text only.
RunBar bar_of(const ComparedRun& run, const PhaseTimes& times) {
  RunBar bar{&run, {}, {{times.known() ? mean_text(times.whole) : "not recorded", times.known() ? theme().text : theme().dim}}};
  if (!times.known()) return bar;
  for (const StepPart& look : step_parts())
    if (look.in_step) bar.parts.push_back({times.*look.ms, theme().series[look.color], part_text(look, times)});
  return bar;
}

// Legend of the colours.
void legend() {
  bool first = true;
  for (const StepPart& look : step_parts()) {
    if (!look.in_step) continue;
    const float width = ImGui::CalcTextSize(look.title).x + em(1.2f);
    if (!first) beside_or_below(width, em(1));
    first = false;
    color_mark(theme().series[look.color]);
    text_fit(look.title, width, theme().dim);
    tooltip(look.help);
  }
}

}  // namespace

void draw_phases_tab(Compare& compare) {
  push_small();
  const auto all = std::make_shared<const AllPhaseTimes>(phase_times(compare.runs));
  double full = 0;
  std::string lacking;
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    const PhaseTimes& times = all->at(run.get());
    if (times.known())
      full = std::max(full, times.whole);
    else
      add_name(lacking, label_of(compare, *run));
  }
  if (!lacking.empty()) banner(Level::warning, "Phase times were not recorded: " + lacking);
  if (!(full > 0)) {
    ImGui::PopFont();
    empty_state(Icon::clock, "No times", "None of these runs recorded the phases of its steps.");
    return;
  }
  legend();
  ImGui::BeginChild("bars", {0, 0});
  std::vector<RunBar> bars;
  for (const auto& run : compare.runs)
    if (const PhaseTimes& times = all->at(run.get()); times.known()) bars.push_back(bar_of(*run, times));
  draw_run_bars(compare, bars, full, "chart:phases");
  ImGui::PopFont();
  ImGui::Dummy({0, em(0.3f)});
  if (begin_run_table("phases", compare, "Mean of the steps", em(8), em(11.2f))) {
    for (const Quantity& quantity : phase_quantities(all)) draw_quantity(compare, quantity);
    ImGui::EndTable();
  }
  ImGui::EndChild();
}

namespace {

constexpr const char* kPhasesTitle = "Phases of a step, mean";

double longest(const AllPhaseTimes& all) {
  double most = 0;
  for (const auto& [run, times] : all)
    if (times.known()) most = std::max(most, times.whole);
  return most;
}

Chart phases_chart(const Compare& compare) {
  const AllPhaseTimes all = phase_times(compare.runs);
  std::vector<BarKind> kinds;
  std::vector<RunBar> bars;
  std::vector<std::vector<std::string>> table = {{"run"}};
  for (const StepPart& look : step_parts()) {
    table[0].push_back(std::string(look.id) + "_ms");
    if (look.in_step) kinds.push_back({look.title, theme().series[look.color]});
  }
  for (const auto& run : compare.runs) {
    const PhaseTimes& times = all.at(run.get());
    bars.push_back(bar_of(*run, times));
    table.push_back({label_of(compare, *run)});
    for (const StepPart& look : step_parts()) table.back().push_back(std::isfinite(times.*look.ms) ? csv_number(times.*look.ms) : "");
  }
  Chart chart = run_bars_chart(compare, "phases", kPhasesTitle, kinds, bars, longest(all));
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> phases_charts(Compare& compare) {
  if (!(longest(phase_times(compare.runs)) > 0)) return {};
  return {{"phases", kPhasesTitle, [&compare] { return phases_chart(compare); }}};
}

}  // namespace comera::studio
