#include "app/studio/compare/tabs.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {

std::span<const CompareTab> compare_tabs() {
  static constexpr CompareTab kTabs[] = {
      {"curves", "Curves", draw_curves_tab, curves_charts},          {"table", "Table", draw_table_tab, table_charts},
      {"config", "Settings", draw_config_tab, config_charts},        {"ranks", "Ranks", draw_ranks_tab, rank_difference_charts},
      {"memory", "Memory", draw_memory_tab, compared_memory_charts}, {"phases", "Phases", draw_phases_tab, phases_charts},
      {"pareto", "Pareto", draw_pareto_tab, pareto_charts},          {"parallel", "Parallel", draw_parallel_tab, parallel_charts},
  };
  return kTabs;
}

bool dashed(int slot) { return slot >= 4; }

float weight_of(const Compare& compare, const ComparedRun& run) { return compare.highlighted == run.wanted ? 1.8f : 1; }

ImU32 color_of(const ComparedRun& run) { return with_alpha(theme().series[static_cast<size_t>(run.slot)], run.faint() ? 0.15f : 1); }

void draw_sample(ImDrawList* list, ImVec2 from, float width, int slot, float alpha) {
  const ImU32 color = with_alpha(theme().series[static_cast<size_t>(slot)], alpha);
  const float weight = std::max(2.0f, em(0.2f));
  if (!dashed(slot)) {
    list->AddLine(from, {from.x + width, from.y}, color, weight);
    return;
  }
  const float dash = width * 0.4f;
  list->AddLine(from, {from.x + dash, from.y}, color, weight);
  list->AddLine({from.x + width - dash, from.y}, {from.x + width, from.y}, color, weight);
}

void run_label(Compare& compare, const ComparedRun& run, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float sample = em(1.1f), gap = em(0.4f);
  draw_sample(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetTextLineHeight() / 2}, sample, run.slot, run.faint() ? 0.3f : 1);
  ImGui::Dummy({sample, ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, gap);
  text_fit(label_of(compare, run), std::max(em(1), width - sample - gap), run.faint() ? theme().dim : theme().text);
  if (ImGui::IsMouseHoveringRect(at, {at.x + width, at.y + ImGui::GetTextLineHeight()}) && ImGui::IsWindowHovered())
    compare.hovered = run.wanted;
}

std::string note_of(const Compare& compare) {
  const std::string at =
      compare.cursor < 0 ? "at the end of each" : "at " + std::string(compare.plots.unit) + " " + significant(compare.cursor, 6);
  return std::to_string(compare.runs.size()) + " runs, " + at;
}

void draw_names(Drawing& out, const Compare& compare, float y) {
  constexpr float kSample = 22, kGap = 18;
  float all = 0;
  for (const auto& run : compare.runs) all += kSample + kGap + static_cast<float>(label_of(compare, *run).size()) * kCharWidth;
  const float room = out.size.x - 40, share = room / static_cast<float>(std::max<size_t>(1, compare.runs.size()));
  float x = 20;
  for (const auto& run : compare.runs) {
    std::string label = label_of(compare, *run);
    if (all > room) label = cut_words(label, share - kSample - kGap);
    out.line({{x, y}, {x + 16, y}}, theme().series[static_cast<size_t>(run->slot)], 2.4f, -1, dashed(run->slot) ? 5.0f : 0.0f);
    out.text({x + kSample, y}, kChartText, theme().dim, label);
    x += all > room ? share : kSample + kGap + static_cast<float>(label.size()) * kCharWidth;
  }
}

void add_name(std::string& names, const std::string& name) { names += (names.empty() ? "" : ", ") + name; }

bool run_combo(const char* id, const Compare& compare, std::string& chosen, float width) {
  const ComparedRun* now = compare.find(chosen);
  bool changed = false;
  ImGui::SetNextItemWidth(width);
  if (!ImGui::BeginCombo(id, now ? label_of(compare, *now).c_str() : "")) return false;
  for (const auto& run : compare.runs) {
    ImGui::PushID(run->wanted.c_str());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_sample(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetTextLineHeight() / 2}, em(1.1f), run->slot);
    ImGui::Dummy({em(1.1f), 0});
    ImGui::SameLine(0, em(0.4f));
    if (ImGui::Selectable((label_of(compare, *run) + "###run").c_str(), run.get() == now) && run.get() != now) {
      chosen = run->wanted;
      changed = true;
    }
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return changed;
}

bool begin_run_table(const char* id, Compare& compare, const char* first, float first_width, float least_width) {
  const auto count = static_cast<float>(compare.runs.size());
  const float room = ImGui::GetContentRegionAvail().x, pad = 2 * ImGui::GetStyle().CellPadding.x;
  const float bar = ImGui::GetStyle().ScrollbarSize;
  const float width = std::clamp((room - bar - first_width - pad) / count - pad - 1, least_width, em(16));
  if (!ImGui::BeginTable(id, static_cast<int>(compare.runs.size()) + 1,
                         ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                             ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingFixedFit))
    return false;
  ImGui::TableSetupScrollFreeze(1, 1);
  ImGui::TableSetupColumn(first, ImGuiTableColumnFlags_WidthFixed, first_width);
  for (const auto& run : compare.runs) ImGui::TableSetupColumn(run->wanted.c_str(), ImGuiTableColumnFlags_WidthFixed, width);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  ImGui::TableNextColumn();
  push_small();
  text_dim(first);
  ImGui::PopFont();
  for (const auto& run : compare.runs) {
    ImGui::TableNextColumn();
    push_small();
    run_label(compare, *run, ImGui::GetContentRegionAvail().x);
    if (compare.baseline_run() == run.get())
      ImGui::TextColored(vec(theme().accent), "baseline");
    else
      text_dim(run->id());
    ImGui::PopFont();
  }
  return true;
}

}  // namespace comera::studio
