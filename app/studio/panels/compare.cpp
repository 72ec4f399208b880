// Runs side by side: list at the left, one tab per view, and a cursor for all runs.
#include "app/studio/compare/compare.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/compare/parallel_axes.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/export.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "core/base/rounding.h"

namespace comera::studio {
namespace {

std::string state_of(const ComparedRun& run) {
  if (!run.problem.empty()) return run.problem;
  if (!run.read()) return "Reading";
  return run.id() + ", " + look_of(run.view->snapshot->phase).text + " at " + thousands(static_cast<double>(run.last_step())) +
         (run.view->config_problem.empty() ? "" : ". Its settings cannot be read");
}

// Sets the colour of a run and stores it as a tag of the run.
void choose_color(UiState& ui, const ComparedRun& run, int slot) {
  const int before = run.chosen_slot;
  const std::string id = run.id();
  choose_slot(ui.compare, run.wanted, slot);
  if (!ui.store || before == slot) return;
  if (before >= 0) ui.store->change({.kind = RunChange::remove_tag, .runs = {id}, .text = color_tag(before)});
  ui.store->change({.kind = RunChange::add_tag, .runs = {id}, .text = color_tag(slot)});
}

// Opened by a click on the sign of a run.
void color_menu(UiState& ui, const ComparedRun& run) {
  if (!ImGui::BeginPopup("colors")) return;
  push_small();
  text_dim("Colour of this run everywhere");
  for (int slot = 0; slot < static_cast<int>(kMostCompared); ++slot) {
    ImGui::PushID(slot);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    std::string of;
    for (const auto& other : ui.compare.runs)
      if (other->slot == slot) of = label_of(ui.compare, *other);
    const float sample = em(2);
    if (ImGui::Selectable("##color", run.slot == slot, 0, {em(14), 0})) choose_color(ui, run, slot);
    name_item("color:" + std::to_string(slot + 1));
    draw_sample(ImGui::GetWindowDrawList(), {at.x + em(0.2f), at.y + ImGui::GetTextLineHeight() / 2}, sample, slot);
    if (!of.empty()) {
      ImGui::SameLine(0, 0);
      ImGui::SetCursorScreenPos({at.x + sample + em(0.7f), at.y});
      text_fit(of, em(11), theme().dim);
    }
    ImGui::PopID();
  }
  ImGui::PopFont();
  ImGui::EndPopup();
}

// An entry of the list: sign, name, progress. A click makes the run the baseline; a click on the sign opens the colours.
void run_entry(UiState& ui, const ComparedRun& run, float width, bool with_state, std::string& gone) {
  Compare& compare = ui.compare;
  const Theme& t = theme();
  ImGui::PushID(run.wanted.c_str());
  const bool baseline = compare.baseline_run() == &run;
  const float pad = em(0.5f), line = ImGui::GetTextLineHeight(), close = em(1.5f);
  push_small();
  const float small = ImGui::GetTextLineHeight();
  ImGui::PopFont();
  const float height = line + (with_state ? small + em(0.15f) : 0) + 2 * em(0.4f);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 local = ImGui::GetCursorPos();
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("baseline", {width, height})) set_baseline(compare, run.wanted);
  if (run.read()) name_item("compared:" + run.wanted);
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) compare.hovered = run.wanted;
  copy_menu({{"Copy id", run.id()}, {"Copy name", run.name()}});
  tooltip((run.name() + "\n" + state_of(run) + (baseline ? "\nThe baseline of the comparison." : "\nClick: use as the baseline.")).c_str());
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + width, at.y + height);
  if (baseline || hovered) list->AddRectFilled(at, end, baseline ? t.accent_soft : t.raised, ImGui::GetStyle().FrameRounding);
  const float sample = em(1.3f);
  draw_sample(list, {at.x + pad, at.y + em(0.4f) + line / 2}, sample, run.slot, run.faint() ? 0.3f : 1);
  ImGui::SetCursorPos({local.x + pad + sample + em(0.5f), local.y + em(0.4f)});
  const float room = width - 2 * pad - sample - em(0.5f) - close;
  const std::string label = label_of(compare, run);
  text_fit(label, room, run.faint() ? t.dim : t.text);
  if (with_state) {
    push_small();
    ImGui::SetCursorPos({local.x + pad + sample + em(0.5f), local.y + em(0.55f) + line});
    const float word = baseline ? ImGui::CalcTextSize("Baseline").x + em(0.6f) : 0;
    if (baseline) {
      ImGui::TextColored(vec(t.accent), "Baseline");
      ImGui::SameLine(0, em(0.6f));
    }
    std::string state = state_of(run);
    const float state_room = std::max(em(1), room + close - word);
    const bool named = label.find(run.id()) != std::string::npos || ImGui::CalcTextSize(state.c_str()).x > state_room;
    if (named && state.starts_with(run.id() + ", ")) state.erase(0, run.id().size() + 2);
    text_fit(state, state_room, run.problem.empty() ? t.dim : t.bad);
    ImGui::PopFont();
  }
  ImGui::SetCursorPos({local.x + pad * 0.5f, local.y + em(0.2f)});
  if (ImGui::InvisibleButton("sign", {sample + pad, line + em(0.4f)})) ImGui::OpenPopup("colors");
  name_item("sign:" + run.wanted);
  tooltip("Choose colour");
  color_menu(ui, run);
  ImGui::SetCursorPos({local.x + width - close - em(0.1f), local.y + em(0.3f)});
  if (ImGui::InvisibleButton("remove", {close, line + em(0.2f)})) gone = run.wanted;
  const bool over = ImGui::IsItemHovered();
  tooltip("Remove from the comparison");
  const ImVec2 middle(end.x - close / 2 - em(0.1f), at.y + em(0.4f) + line / 2);
  draw_icon(list, Icon::cross, middle, em(0.6f), over ? t.text : hovered ? t.dim : with_alpha(t.dim, 0.6f));
  ImGui::SetCursorPos({local.x, local.y + height});
  ImGui::Dummy({width, 0});
  ImGui::PopID();
}

void run_list(UiState& ui, bool beside) {
  Compare& compare = ui.compare;
  std::string gone;
  if (beside) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, em(0.15f)));
    const std::vector<std::shared_ptr<ComparedRun>> runs = compare.runs;
    for (const auto& run : runs) run_entry(ui, *run, ImGui::GetContentRegionAvail().x, true, gone);
    ImGui::PopStyleVar();
    ImGui::Dummy({0, em(0.3f)});
  } else {
    const float room = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize, gap = em(0.4f);
    const int columns = std::clamp(static_cast<int>(room / em(9.5f)), 1, static_cast<int>(compare.runs.size()));
    const float width = std::min(em(20), std::floor((room - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns)));
    const int rows = ceil_div(static_cast<int>(compare.runs.size()), columns);
    const float line = ImGui::GetTextLineHeight() + em(0.8f);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, 0));
    ImGui::BeginChild("strip", {0, line * std::min(2.5f, static_cast<float>(rows))});  // half a row shows that the list scrolls
    for (size_t i = 0; i < compare.runs.size(); ++i) {
      if (i % static_cast<size_t>(columns) != 0) ImGui::SameLine(0, gap);
      ImGui::BeginGroup();
      run_entry(ui, *compare.runs[i], width, false, gone);
      ImGui::EndGroup();
    }
    ImGui::EndChild();
    ImGui::PopStyleVar();
  }
  if (!gone.empty()) unpick_run(compare, gone);
}

// A slider for the cursor of all runs.
void scrubber(UiState& ui) {
  Compare& compare = ui.compare;
  const double last = last_position(compare);
  ImGui::BeginDisabled(!(last > 0));
  push_small();
  const PlotView& plots = compare.plots;
  const auto text_of = [&](double place) {
    return std::string(plots.unit) + " " + (plots.grain < 1 ? significant(place, 4) : thousands(std::floor(place)));
  };
  const float words = ImGui::CalcTextSize((text_of(last) + "00").c_str()).x;
  const float end = button_width("To the end###end", {.icon = Icon::forward});
  const float room = ImGui::GetContentRegionAvail().x, gap = em(0.7f);
  double place = compare.cursor < 0 ? last : compare.cursor;
  const float y = ImGui::GetCursorPosY(), middle = (ImGui::GetFrameHeight() - em(1.15f)) / 2, left = ImGui::GetCursorPosX();
  ImGui::SetCursorPosY(y + middle);
  if (slim_slider("##cursor", place, 0, std::max(last, 1e-9), false, std::max(em(5), room - words - end - 2 * gap)))
    move_cursor(compare, place);
  tooltip("Moves all runs to one position: values, ranks and memory are shown there. A click in a plot does the same.");
  ImGui::SetCursorPos({left + std::max(em(5), room - words - end - 2 * gap) + gap, y});
  ImGui::AlignTextToFramePadding();
  if (compare.cursor < 0)
    text_dim("at the end");
  else
    ImGui::TextColored(vec(theme().warning), "%s", text_of(place).c_str());
  ImGui::SetCursorPos({left + room - end, y});
  if (button("To the end###end", {.icon = Icon::forward,
                                  .enabled = compare.cursor >= 0,
                                  .tooltip = "Shows each run at its newest step",
                                  .keys = ui.settings.keys.of("compare.newest"),
                                  .why_not = "Already at the end"}))
    move_cursor(compare, -1);
  ImGui::PopFont();
  ImGui::EndDisabled();
}

void tabs(UiState& ui) {
  Compare& compare = ui.compare;
  const ImVec2 at = ImGui::GetCursorPos();
  const float room = ImGui::GetContentRegionAvail().x;
  // Drawn before the tabs: after them it would be below their content.
  ImGui::SetCursorPosX(at.x + room - export_button_width());
  export_button(ui, "compare");
  ImGui::SetCursorPos(at);
  ImGuiWindow& window = *ImGui::GetCurrentWindow();
  window.WorkRect.Max.x -= export_button_width();
  const bool open = ImGui::BeginTabBar("tabs", ImGuiTabBarFlags_FittingPolicyMixed);
  window.WorkRect.Max.x += export_button_width();
  if (!open) return;
  for (const CompareTab& tab : compare_tabs()) {
    const bool front = compare.tab == tab.id;
    if (!ImGui::BeginTabItem((std::string(tab.title) + "###" + tab.id).c_str(), nullptr, front ? ImGuiTabItemFlags_SetSelected : 0))
      continue;
    if (front) compare.tab.clear();
    compare.front_tab = tab.id;
    const float bottom = ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.y;
    if (begin_card("tab", {0, ImGui::GetContentRegionAvail().y - bottom})) tab.draw(compare);
    end_card();
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
  window.DC.CursorMaxPos.x = std::min(window.DC.CursorMaxPos.x, window.WorkRect.Max.x);  // more tabs are scrolled in the bar itself
  scrubber(ui);
}

}  // namespace

bool compare_shown(const UiState& ui) { return ui.layout == "compare" || ui.compare.drawn_frame >= ImGui::GetFrameCount() - 1; }

std::vector<ListedChart> compare_charts(UiState& ui) {
  std::vector<ListedChart> out;
  if (ui.compare.runs.size() < 2) return out;
  for (const CompareTab& tab : compare_tabs())
    for (const ListedChart& of : tab.charts(ui.compare)) {
      const std::string name = "compare-" + of.name, title = std::string(tab.title) + ": " + of.title;
      out.push_back({name, title, [name, title, draw = of.draw] {
                       Chart chart = draw();
                       chart.name = name;
                       chart.title = title;
                       return chart;
                     }});
    }
  return out;
}

void draw_compare(UiState& ui) {
  Compare& compare = ui.compare;
  compare.drawn_frame = ImGui::GetFrameCount();
  handle_keys(ui, KeyScope::compare);
  fade_unbrushed(compare);
  highlight_hovered(compare);
  if (compare.runs.size() < 2) {
    const bool none = compare.runs.empty();
    if (begin_card("empty")) {
      if (!none) {
        run_list(ui, false);
        ImGui::Dummy({0, em(0.5f)});
      }
      bool with_parent = false;
      if (empty_state(Icon::chart, none ? "Tick two runs in the list" : "Tick one more run in the list",
                      "Curves, results, settings, ranks and memory of ticked runs appear here side by side, one run as the baseline.",
                      "Show runs", Icon::home, ui.shown().parent.empty() ? nullptr : "Compare with parent###compare-parent", &with_parent))
        show_layout(ui, "start");
      if (with_parent) perform(ui, "run.compare-parent");
    }
    end_card();
    return;
  }
  const float room = ImGui::GetContentRegionAvail().x;
  const bool beside = room > em(58);
  if (beside) {
    if (begin_card("runs", {std::clamp(room * 0.2f, em(14), em(22)), 0})) {
      card_title("Runs", "Click a run to make it the baseline; B takes the next one. Tick runs in the list of runs.");
      ImGui::Dummy({0, em(0.2f)});
      run_list(ui, true);
      push_small();
      if (button("Choose runs", {.icon = Icon::home, .tooltip = "Opens the list of runs", .keys = ui.settings.keys.of("layout.start")}))
        show_layout(ui, "start");
      ImGui::PopFont();
    }
    end_card();
    ImGui::SameLine();
  } else {
    run_list(ui, false);
  }
  if (compare.runs.size() < 2) return;  // a run was just removed
  ImGui::BeginChild("views");
  tabs(ui);
  ImGui::EndChild();
  if (!compare.export_asked.empty()) open_export(ui, "compare", std::exchange(compare.export_asked, ""));
}

}  // namespace comera::studio
