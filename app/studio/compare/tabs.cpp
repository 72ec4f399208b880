#include "app/studio/compare/tabs.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {

std::span<const CompareTab> compare_tabs() {
  static constexpr CompareTab kTabs[] = {
      {"curves", "Curves", draw_curves_tab, curves_charts},          {"table", "Table", draw_table_tab, table_charts},
      {"config", "Settings", draw_config_tab, config_charts},        {"ranks", "Ranks", draw_ranks_tab, rank_difference_charts},
      {"memory", "Memory", draw_memory_tab, compared_memory_charts}, {"pareto", "Pareto", draw_pareto_tab, pareto_charts},
      {"parallel", "Parallel", draw_parallel_tab, parallel_charts},
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

std::string note_of(const Compare& compare) {
  const std::string at =
      compare.cursor < 0 ? "at the end of each" : "at " + std::string(compare.plots.unit) + " " + significant(compare.cursor, 6);
  return std::to_string(compare.runs.size()) + " runs, " + at;
}

namespace {

constexpr float kChartText = 12, kCharWidth = kChartText * 0.56f;

// As much of a text as there is room for.
std::string cut(const std::string& text, float room) {
  const auto most = static_cast<size_t>(std::max(1.0f, room / kCharWidth));
  return text.size() <= most ? text : text.substr(0, most > 3 ? most - 3 : 1) + "...";
}

}  // namespace

Drawing begin_drawing(ImVec2 size, const std::string& title, const std::string& note) {
  Drawing out;
  out.size = size;
  out.background = theme().card;
  out.title = title + (note.empty() ? "" : ", " + note);
  out.text({20, 22}, 16, theme().text, title, Anchor::left, true);
  out.text({20, 42}, kChartText, theme().dim, cut(note, size.x - 40));
  return out;
}

void draw_names(Drawing& out, const Compare& compare, float y) {
  constexpr float kSample = 22, kGap = 18;
  float all = 0;
  for (const auto& run : compare.runs) all += kSample + kGap + static_cast<float>(label_of(compare, *run).size()) * kCharWidth;
  const float room = out.size.x - 40, share = room / static_cast<float>(std::max<size_t>(1, compare.runs.size()));
  float x = 20;
  for (const auto& run : compare.runs) {
    std::string label = label_of(compare, *run);
    if (all > room) label = cut(label, share - kSample - kGap);
    out.line({{x, y}, {x + 16, y}}, theme().series[static_cast<size_t>(run->slot)], 2.4f, -1, dashed(run->slot) ? 5.0f : 0.0f);
    out.text({x + kSample, y}, kChartText, theme().dim, label);
    x += all > room ? share : kSample + kGap + static_cast<float>(label.size()) * kCharWidth;
  }
}

Chart table_chart(std::string name, const std::string& title, const std::string& note, std::vector<std::vector<std::string>> rows) {
  constexpr float kRow = 20, kPad = 16, kMost = 260;
  std::vector<float> widths;
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(60);
      widths[i] = std::min(kMost, std::max(widths[i], static_cast<float>(row[i].size()) * kCharWidth + kPad));
    }
  float width = 40;
  for (const float one : widths) width += one;
  Chart chart{
      std::move(name), title, {}, begin_drawing({std::max(width, 420.0f), 76 + kRow * static_cast<float>(rows.size())}, title, note)};
  Drawing& out = chart.drawing;
  for (size_t r = 0; r < rows.size(); ++r) {
    const float y = 70 + kRow * static_cast<float>(r);
    float x = 20;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string text = cut(rows[r][i], widths[i] - kPad / 2);
      if (i == 0)
        out.text({x, y}, kChartText, r == 0 ? theme().dim : theme().text, text);
      else
        out.text({x + widths[i] - 4, y}, kChartText, r == 0 ? theme().dim : theme().text, text, Anchor::right);
      x += widths[i];
    }
    out.line({{20, y + kRow / 2}, {out.size.x - 20, y + kRow / 2}}, theme().grid, 1);
  }
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  return chart;
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
