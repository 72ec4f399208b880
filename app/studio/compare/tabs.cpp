#include "app/studio/compare/tabs.h"

#include <algorithm>

#include "app/studio/widgets.h"

namespace comera::studio {

std::span<const CompareTab> compare_tabs() {
  static constexpr CompareTab kTabs[] = {
      {"curves", "Curves", draw_curves_tab},       {"table", "Table", draw_table_tab},    {"config", "Settings", draw_config_tab},
      {"ranks", "Ranks", draw_ranks_tab},          {"memory", "Memory", draw_memory_tab}, {"pareto", "Pareto", draw_pareto_tab},
      {"parallel", "Parallel", draw_parallel_tab},
  };
  return kTabs;
}

bool dashed(int slot) { return slot >= 4; }

ImU32 color_of(const ComparedRun& run) { return with_alpha(theme().series[static_cast<size_t>(run.slot)], run.faded ? 0.15f : 1); }

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

void run_label(const Compare& compare, const ComparedRun& run, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float sample = em(1.1f), gap = em(0.4f);
  draw_sample(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetTextLineHeight() / 2}, sample, run.slot, run.faded ? 0.3f : 1);
  ImGui::Dummy({sample, ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, gap);
  text_fit(label_of(compare, run), std::max(em(1), width - sample - gap), run.faded ? theme().dim : theme().text);
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

bool begin_run_table(const char* id, const Compare& compare, const char* first, float first_width, float least_width) {
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
