// Settings of the runs: what differs, as they began and what edits made of them.
#include <algorithm>
#include <cctype>

#include "app/studio/compare/tabs.h"
#include "app/studio/widgets.h"

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

std::string markdown(const Compare& compare, const std::vector<const SettingRow*>& rows) {
  std::string text = "| setting |", line = "|---|";
  for (const auto& run : compare.runs) {
    text += " " + label_of(compare, *run) + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const SettingRow* row : rows) {
    text += "| " + row->path + " |";
    for (const std::string& value : row->values) text += " " + (value.empty() ? "-" : value) + " |";
    text += "\n";
  }
  return text;
}

}  // namespace

void draw_config_tab(Compare& compare) {
  const std::vector<SettingRow> all = settings_of(compare.runs);
  const std::string filter = lower(compare.setting_filter);
  std::vector<const SettingRow*> rows;
  size_t different = 0;
  for (const SettingRow& row : all) {
    if (!row.same) ++different;
    if ((compare.all_settings || !row.same) && fits(row, filter)) rows.push_back(&row);
  }
  push_small();
  ImGui::AlignTextToFramePadding();
  bool only = !compare.all_settings;
  if (ImGui::Checkbox("Only differences", &only)) compare.all_settings = !only;
  ImGui::SameLine(0, em(1));
  char text[128];
  std::snprintf(text, sizeof text, "%s", compare.setting_filter.c_str());
  ImGui::SetNextItemWidth(std::clamp(ImGui::GetContentRegionAvail().x - em(20), em(7), em(18)));
  if (ImGui::InputTextWithHint("##filter", "Setting or value", text, sizeof text)) compare.setting_filter = text;
  ImGui::SameLine(0, em(1));
  if (button("Copy", {.icon = Icon::save, .enabled = !rows.empty(), .tooltip = "Copy this table as Markdown"}))
    ImGui::SetClipboardText(markdown(compare, rows).c_str());
  ImGui::SameLine(0, em(1));
  text_fit(std::to_string(different) + " of " + std::to_string(all.size()) + " differ. Coloured: other than the baseline",
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
      const SettingRow& row = *rows[static_cast<size_t>(r)];
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
