#include "app/studio/compare/tabs.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {

static_assert(kMarkers == kMostCompared, "each run has its own marker");

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

Marker marker_of(int slot) { return static_cast<Marker>(slot + 1); }

float weight_of(const Compare& compare, const ComparedRun& run) { return compare.highlighted == run.wanted ? 1.8f : 1; }

ImU32 color_of(const ComparedRun& run) { return with_alpha(theme().series[static_cast<size_t>(run.slot)], run.faint() ? 0.15f : 1); }

void draw_sample(ImDrawList* list, ImVec2 from, float width, int slot, float alpha) {
  const ImU32 color = with_alpha(theme().series[static_cast<size_t>(slot)], alpha);
  const float weight = std::max(2.0f, em(0.2f));
  const float dash = dashed(slot) ? width * 0.22f : width / 2;  // the marker is drawn in the gap
  list->AddLine(from, {from.x + dash, from.y}, color, weight);
  list->AddLine({from.x + width - dash, from.y}, {from.x + width, from.y}, color, weight);
  draw_marker(list, marker_of(slot), {from.x + width / 2, from.y}, std::min(ImGui::GetFontSize() * 0.19f, width * 0.15f), color);
}

void run_label(Compare& compare, const ComparedRun& run, float width, bool with_sign) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float sample = em(kSampleWidth), gap = em(0.4f);
  if (with_sign)
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
  constexpr float kLine = 24, kSign = kLine + 6, kGap = 18;
  float all = 0;
  for (const auto& run : compare.runs) all += kSign + kGap + static_cast<float>(label_of(compare, *run).size()) * kCharWidth;
  const float room = out.size.x - 40, share = room / static_cast<float>(std::max<size_t>(1, compare.runs.size()));
  float x = 20;
  for (const auto& run : compare.runs) {
    std::string label = label_of(compare, *run);
    if (all > room) label = cut_words(label, share - kSign - kGap);
    const Color color = theme().series[static_cast<size_t>(run->slot)];
    out.line({{x, y}, {x + kLine, y}}, color, 2.4f, -1, dashed(run->slot) ? 5.0f : 0.0f);
    add_marker(out, marker_of(run->slot), {x + kLine / 2, y}, 4, color);
    out.text({x + kSign, y}, kChartText, theme().dim, label);
    x += all > room ? share : kSign + kGap + static_cast<float>(label.size()) * kCharWidth;
  }
}

void add_name(std::string& names, const std::string& name) { names += (names.empty() ? "" : ", ") + name; }

bool run_combo(const char* id, const Compare& compare, std::string& chosen, float width) {
  const ComparedRun* now = compare.find(chosen);
  bool changed = false;
  ImGui::SetNextItemWidth(width);
  if (!ImGui::BeginCombo(id, now ? whole_label(label_of(compare, *now)).c_str() : "")) return false;
  for (const auto& run : compare.runs) {
    ImGui::PushID(run->wanted.c_str());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_sample(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetTextLineHeight() / 2}, em(kSampleWidth), run->slot);
    ImGui::Dummy({em(kSampleWidth), 0});
    ImGui::SameLine(0, em(0.4f));
    if (ImGui::Selectable((whole_label(label_of(compare, *run)) + "###run").c_str(), run.get() == now) && run.get() != now) {
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
