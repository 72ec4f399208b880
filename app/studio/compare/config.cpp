// Settings of the runs with their edits; by default only settings that differ.
#include <algorithm>
#include <utility>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

bool fits(const SettingRow& row, const TextFilter& filter) {
  return filter.fits(row.path) ||
         std::any_of(row.values.begin(), row.values.end(), [&](const std::string& value) { return !value.empty() && filter.fits(value); });
}

// Escapes a text for a cell of a Markdown table.
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

// A setting of all runs as text for the clipboard.
std::string line_of(const Compare& compare, const SettingRow& row) {
  std::string text = row.path;
  for (size_t i = 0; i < row.values.size(); ++i)
    text += "\n" + label_of(compare, *compare.runs[i]) + "\t" + (row.values[i].empty() ? "not set" : row.values[i]);
  return text;
}

// The shown settings. `different`: how many of `all` differ.
std::vector<SettingRow> shown_settings(const Compare& compare, size_t& all, size_t& different) {
  std::vector<SettingRow> rows;
  all = different = 0;
  for (SettingRow& row : settings_of(compare.runs)) {
    ++all;
    if (!row.same) ++different;
    if ((compare.all_settings || !row.same) && fits(row, compare.setting_filter)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string settings_markdown(const Compare& compare) {
  size_t all = 0, different = 0;
  return markdown(compare, shown_settings(compare, all, different));
}

std::vector<ListedChart> config_charts(Compare& compare) {
  size_t all = 0, different = 0;
  const auto settings = std::make_shared<const std::vector<SettingRow>>(shown_settings(compare, all, different));
  if (settings->empty()) return {};
  const char* title = compare.all_settings ? "Settings" : "Settings that differ";
  return {{"settings", title, [&compare, settings, title] {
             std::vector<std::vector<std::string>> rows = {{"setting"}};
             for (const auto& run : compare.runs) rows[0].push_back(label_of(compare, *run));
             for (const SettingRow& row : *settings) {
               rows.push_back({row.path});
               rows.back().insert(rows.back().end(), row.values.begin(), row.values.end());
             }
             return table_chart("settings", title, note_of(compare), std::move(rows));
           }}};
}

void draw_config_tab(Compare& compare) {
  size_t all = 0, different = 0;
  const std::vector<SettingRow> rows = shown_settings(compare, all, different);
  TextFilter& filter = compare.setting_filter;
  push_small();
  ImGui::AlignTextToFramePadding();
  bool only = !compare.all_settings;
  if (ImGui::Checkbox("Only differences", &only)) compare.all_settings = !only;
  ImGui::SameLine(0, em(1));
  filter_box(filter, "Setting, value or /regex/",
             "Settings with these words in path or value; a regular expression between slashes: /lr_|target/",
             std::clamp(ImGui::GetContentRegionAvail().x - em(13), em(7), em(18)), std::exchange(compare.wants_filter, false));
  ImGui::SameLine(0, em(1));
  if (button("Copy as Markdown###copy",
             {.icon = Icon::save, .enabled = !rows.empty(), .tooltip = "Copies this table for a paper or an issue"}))
    ImGui::SetClipboardText(settings_markdown(compare).c_str());
  const std::string summary = std::to_string(different) + " of " + std::to_string(all) + " differ. Coloured: different from the baseline";
  beside_or_below(ImGui::CalcTextSize(summary.c_str()).x, em(1));
  text_fit(summary, ImGui::GetContentRegionAvail().x, theme().dim);
  ImGui::PopFont();
  for (const auto& run : compare.runs)
    if (run->read() && !run->view->config_problem.empty())
      banner(Level::warning, "The settings of " + label_of(compare, *run) + " cannot be read: " + run->view->config_problem);
  if (rows.empty()) {
    if (filter.empty())
      empty_state(Icon::check, "No differences", "These runs have the same settings, and no edit changed one.");
    else
      empty_state(Icon::search, "No match",
                  compare.all_settings ? "Clear the search to show all settings." : "Clear the search, or search all settings.");
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
      ImGui::PushID(r);
      text_fit(row.path, ImGui::GetContentRegionAvail().x, theme().text);
      const std::string line = ImGui::IsMouseReleased(ImGuiMouseButton_Right) ? line_of(compare, row) : "";
      copy_menu({{"Copy path", row.path}, {"Copy line", line}});
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
        name_item("setting:" + row.path + ":" + compare.runs[i]->wanted);
        ImGui::PushID(static_cast<int>(i));
        copy_menu({{"Copy value", row.values[i]}, {"Copy line", line}});
        ImGui::PopID();
      }
      ImGui::PopID();
    }
  ImGui::EndTable();
}

}  // namespace comera::studio
