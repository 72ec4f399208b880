// Settings of the runs: what differs, as they began and what edits made of them.
#include <algorithm>
#include <cctype>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool fits(const SettingRow& row, const std::string& filter) {
  if (filter.empty() || lower(row.path).find(filter) != std::string::npos) return true;
  return std::any_of(row.values.begin(), row.values.end(),
                     [&](const std::string& value) { return lower(value).find(filter) != std::string::npos; });
}

// As a cell of a Markdown table.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}

std::string markdown(const Compare& compare, const std::vector<SettingRow>& rows) {
  std::string text = "| setting |", line = "|---|";
  for (const auto& run : compare.runs) {
    text += " " + escaped(label_of(compare, *run)) + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const SettingRow& row : rows) {
    text += "| " + row.path + " |";
    for (const std::string& value : row.values) text += " " + (value.empty() ? "-" : escaped(value)) + " |";
    text += "\n";
  }
  return text;
}

// Those that are shown; `different`: how many of all differ.
std::vector<SettingRow> shown_settings(const Compare& compare, size_t& all, size_t& different) {
  const std::string filter = lower(compare.setting_filter);
  std::vector<SettingRow> rows;
  all = different = 0;
  for (SettingRow& row : settings_of(compare.runs)) {
    ++all;
    if (!row.same) ++different;
    if ((compare.all_settings || !row.same) && fits(row, filter)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string settings_markdown(const Compare& compare) {
  size_t all = 0, different = 0;
  return markdown(compare, shown_settings(compare, all, different));
}

std::vector<Chart> config_charts(Compare& compare) {
  size_t all = 0, different = 0;
  std::vector<std::vector<std::string>> rows = {{"setting"}};
  for (const auto& run : compare.runs) rows[0].push_back(label_of(compare, *run));
  for (const SettingRow& row : shown_settings(compare, all, different)) {
    rows.push_back({row.path});
    rows.back().insert(rows.back().end(), row.values.begin(), row.values.end());
  }
  std::vector<Chart> out;
  if (rows.size() > 1)
    out.push_back(table_chart("settings", compare.all_settings ? "Settings" : "Settings that differ", note_of(compare), rows));
  return out;
}

void draw_config_tab(Compare& compare) {
  size_t all = 0, different = 0;
  const std::vector<SettingRow> rows = shown_settings(compare, all, different);
  const std::string& filter = compare.setting_filter;
  push_small();
  ImGui::AlignTextToFramePadding();
  bool only = !compare.all_settings;
  if (ImGui::Checkbox("Only differences", &only)) compare.all_settings = !only;
  ImGui::SameLine(0, em(1));
  char text[128];
  std::snprintf(text, sizeof text, "%s", compare.setting_filter.c_str());
  ImGui::SetNextItemWidth(std::clamp(ImGui::GetContentRegionAvail().x - em(26), em(7), em(18)));
  if (ImGui::InputTextWithHint("##filter", "Setting or value", text, sizeof text)) compare.setting_filter = text;
  ImGui::SameLine(0, em(1));
  if (button("Copy as Markdown###copy", {.icon = Icon::save, .enabled = !rows.empty(), .tooltip = "This table, for a paper or an issue"}))
    ImGui::SetClipboardText(settings_markdown(compare).c_str());
  ImGui::SameLine(0, em(1));
  text_fit(std::to_string(different) + " of " + std::to_string(all) + " differ. Coloured: other than the baseline",
           ImGui::GetContentRegionAvail().x, theme().dim);
  ImGui::PopFont();
  if (rows.empty()) {
    if (filter.empty())
      empty_state(Icon::check, "No difference", "These runs began with the same settings, and no edit changed one.");
    else
      empty_state(Icon::search, "No setting fits",
                  compare.all_settings ? "Clear the search to see all of them." : "Clear the search, or look among all settings.");
    return;
  }
  if (!begin_run_table("settings", compare, "Setting", em(14), em(8))) return;
  const ComparedRun* baseline = compare.baseline_run();
  size_t base = 0;
  while (base < compare.runs.size() && compare.runs[base].get() != baseline) ++base;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int r = clipper.DisplayStart; r < clipper.DisplayEnd; ++r) {
      const SettingRow& row = rows[static_cast<size_t>(r)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      text_fit(row.path, ImGui::GetContentRegionAvail().x, theme().text);
      for (size_t i = 0; i < row.values.size(); ++i) {
        ImGui::TableNextColumn();
        const bool differs = row.values[i] != row.values[base];
        if (differs) ImGui::TableSetBgColor(ImGuiTableBgTarget_CellBg, theme().accent_soft);
        if (row.values[i].empty()) {
          text_dim(compare.runs[i]->read() ? "not set" : "");
          continue;
        }
        ImGui::PushFont(fonts().numbers, ImGui::GetStyle().FontSizeBase * 0.9f);
        text_fit(row.values[i], ImGui::GetContentRegionAvail().x, differs || i == base ? theme().text : theme().dim);
        ImGui::PopFont();
      }
    }
  ImGui::EndTable();
}

}  // namespace comera::studio
