// Where the time of a step goes, a bar a run on one scale, and each phase against the baseline's.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/compare/phase_times.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

std::string ms_text(double ms) { return significant(ms, 4) + " ms"; }

std::string part_text(const StepPart& look, const PhaseTimes& times) {
  char share[32];
  std::snprintf(share, sizeof share, ", %.1f %% of the step", 100 * times.*look.ms / times.whole);
  return std::string(look.title) + "  " + ms_text(times.*look.ms) + (times.whole > 0 ? share : "");
}

void draw_bar(Compare& compare, const ComparedRun& run, const PhaseTimes& times, double full, float width, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, theme().raised, em(0.2f));
  std::vector<Copied> copied;
  float x = at.x;
  for (const StepPart& look : step_parts()) {
    const double ms = times.*look.ms;
    if (!look.in_step || !(ms > 0)) continue;
    const float part = static_cast<float>(ms / full) * width;
    list->AddRectFilled({x, at.y}, {x + std::max(part - (part > 3 ? 1.0f : 0.0f), 0.5f), at.y + height},
                        with_alpha(theme().series[look.color], run.faint() ? 0.3f : 1), em(0.12f));
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + part, at.y + height}) && ImGui::IsWindowHovered()) {
      ImGui::SetTooltip("%s", part_text(look, times).c_str());
      copied = {{"Copy value", part_text(look, times)}};
    }
    x += part;
  }
  ImGui::PushID(run.wanted.c_str());
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
  ImGui::Dummy({width, height});
  if (ImGui::IsItemHovered()) compare.hovered = run.wanted;
  name_item("chart:phases");
}

// What the colours mean, as far as there is room.
void legend() {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  bool first = true;
  for (const StepPart& look : step_parts()) {
    if (!look.in_step) continue;
    const float width = ImGui::CalcTextSize(look.title).x + em(1.2f);
    if (!first) {
      ImGui::SameLine(0, em(1));
      if (ImGui::GetCursorPosX() + width > right) ImGui::NewLine();
    }
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
  if (!lacking.empty()) banner(Level::warning, "Times of phases were not recorded: " + lacking);
  if (!(full > 0)) {
    ImGui::PopFont();
    empty_state(Icon::clock, "No times", "None of these runs recorded the phases of its steps.");
    return;
  }
  legend();
  ImGui::BeginChild("bars", {0, 0});
  const float room = ImGui::GetContentRegionAvail().x, names = std::clamp(room * 0.28f, em(7), em(18)), numbers = em(7);
  const float width = std::max(em(4), room - names - numbers - em(1)), height = em(1.25f);
  for (const auto& run : compare.runs) {
    const PhaseTimes& times = all->at(run.get());
    if (!times.known()) continue;
    const float left = ImGui::GetCursorPosX(), top = ImGui::GetCursorPosY(), middle = (height - ImGui::GetTextLineHeight()) / 2;
    ImGui::SetCursorPosY(top + middle);
    run_label(compare, *run, names);
    ImGui::SetCursorPos({left + names + em(0.5f), top});
    draw_bar(compare, *run, times, full, width, height);
    ImGui::SetCursorPos({left + names + width + em(0.5f), top + middle});
    ImGui::PushFont(fonts().numbers, 0);
    text_right(ms_text(times.whole), left + names + width + em(0.5f) + numbers, theme().text);
    ImGui::PopFont();
    ImGui::SetCursorPos({left, top + height + em(0.45f)});
    ImGui::Dummy({0, 0});
  }
  ImGui::PopFont();
  ImGui::Dummy({0, em(0.3f)});
  if (begin_run_table("phases", compare, "Mean of the steps", em(10), em(12))) {
    for (const Quantity& quantity : phase_quantities(all)) draw_quantity(compare, quantity);
    ImGui::EndTable();
  }
  ImGui::EndChild();
}

std::vector<Chart> phases_charts(Compare& compare) {
  std::vector<Chart> out;
  const AllPhaseTimes all = phase_times(compare.runs);
  double full = 0;
  for (const auto& [run, times] : all)
    if (times.known()) full = std::max(full, times.whole);
  if (!(full > 0)) return out;
  constexpr float kNames = 220, kBar = 480, kRow = 30, kTop = 96;
  Chart chart{"phases",
              "Phases of a step",
              {},
              begin_drawing({kNames + kBar + 150, kTop + 20 + kRow * static_cast<float>(compare.runs.size())}, "Phases of a step, mean",
                            note_of(compare))};
  Drawing& drawing = chart.drawing;
  float x = 20;
  std::vector<std::vector<std::string>> table = {{"run"}};
  for (const StepPart& look : step_parts()) {
    table[0].push_back(std::string(look.id) + "_ms");
    if (!look.in_step) continue;
    drawing.rect({x, 60}, {x + 10, 70}, theme().series[look.color], 2);
    drawing.text({x + 15, 65}, 11, theme().dim, look.title);
    x += 34 + static_cast<float>(std::string(look.title).size()) * 6.2f;
  }
  drawing.size.x = std::max(drawing.size.x, x + 10);
  for (size_t r = 0; r < compare.runs.size(); ++r) {
    const ComparedRun& run = *compare.runs[r];
    const PhaseTimes& times = all.at(&run);
    const float y = kTop + kRow * static_cast<float>(r);
    drawing.text({20, y + kRow / 2}, kChartText, theme().text, cut_words(label_of(compare, run), kNames - 30));
    table.push_back({label_of(compare, run)});
    float at = kNames;
    for (const StepPart& look : step_parts()) {
      const double ms = times.*look.ms;
      table.back().push_back(std::isfinite(ms) ? csv_number(ms) : "");
      if (!look.in_step || !(ms > 0)) continue;
      const float part = static_cast<float>(ms / full) * kBar;
      drawing.rect({at, y + 5}, {at + part, y + kRow - 5}, theme().series[look.color], 1);
      at += part;
    }
    drawing.text({at + 8, y + kRow / 2}, kChartText, times.known() ? theme().text : theme().dim,
                 times.known() ? ms_text(times.whole) : "not recorded");
  }
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  out.push_back(std::move(chart));
  return out;
}

}  // namespace comera::studio
