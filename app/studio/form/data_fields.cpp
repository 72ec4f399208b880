#include "app/studio/form/data_fields.h"

#include <imgui.h>

#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/dialogs.h"
#include "app/studio/form/new_run.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"
#include "core/base/rounding.h"

namespace comera::studio {
namespace {

struct ColumnSetting {
  const char *path, *what;
  std::string ColumnNames::*name;
};
constexpr ColumnSetting kColumns[] = {{"data.text_column", "text", &ColumnNames::first},
                                      {"data.second_column", "second text", &ColumnNames::second},
                                      {"data.label_column", "label", &ColumnNames::label}};

const ColumnSetting* setting_of(const std::string& path) {
  const auto found = std::find_if(std::begin(kColumns), std::end(kColumns), [&](const ColumnSetting& one) { return path == one.path; });
  return found == std::end(kColumns) ? nullptr : found;
}

void small_line(const std::string& text, float room) {
  push_small();
  text_fit(text, room, theme().dim);
  ImGui::PopFont();
}

// Histogram of tokens per row; tokens that model.length cuts off have another colour.
void length_histogram(const DataFacts& facts, int64_t length, float width) {
  constexpr int kBars = 48;
  // Leaves out the longest 1 %, which would flatten the rest.
  const int64_t end = std::max<int64_t>(8, facts.lengths[facts.lengths.size() * 99 / 100] * 5 / 4), shown = std::max(end, length * 9 / 8);
  std::vector<int64_t> counts(kBars, 0);
  for (const int64_t tokens : facts.lengths) ++counts[static_cast<size_t>(std::min<int64_t>(kBars - 1, tokens * kBars / shown))];
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  const float height = em(2.6f), bar = width / kBars;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (int i = 0; i < kBars; ++i) {
    const float share = static_cast<float>(counts[static_cast<size_t>(i)]) / static_cast<float>(most),
                x = at.x + bar * static_cast<float>(i);
    const bool beyond = i * shown / kBars >= length;
    if (share > 0)
      list->AddRectFilled({x, at.y + height * (1 - share)}, {x + std::max(1.0f, bar - 1), at.y + height},
                          beyond ? theme().warning : theme().series[0], 1);
  }
  const float limit = at.x + width * static_cast<float>(length) / static_cast<float>(shown);
  list->AddLine({limit, at.y}, {limit, at.y + height}, theme().warning, std::max(1.0f, em(0.08f)));
  list->AddLine({at.x, at.y + height}, {at.x + width, at.y + height}, theme().grid, 1);
  ImGui::Dummy({width, height});
  told("lengths", "Tokens per text, 0 to " + thousands(static_cast<double>(shown)) + ", of " +
                      thousands(static_cast<double>(facts.lengths.size())) + " evenly spaced texts of the set; the longest has " +
                      thousands(static_cast<double>(facts.longest())) + ". The line: model.length.");
}

}  // namespace

void draw_data_facts(const NewRun& form, float room) {
  const auto line = [&](const std::string& text) { small_line(text, room); };
  const DataFacts* facts = form.facts();
  if (form.data_wanted.set.empty() || (facts && !facts->problem.empty())) return;  // the problem is shown instead
  if (!facts) return line("Reading the data set");
  const int64_t length = form.config.model.length;
  if (facts->joined_tokens > 0) {
    line(thousands(static_cast<double>(facts->joined_tokens)) + " tokens, " +
         thousands(static_cast<double>(ceil_div(facts->joined_tokens, length))) + " sequences of " + std::to_string(length));
    for (const std::string& row : facts->first) line(row);
    return;
  }
  std::string text = thousands(static_cast<double>(facts->rows)) + " rows";
  if (facts->classes > 0) text += ", " + thousands(static_cast<double>(facts->classes)) + " classes";
  if (!facts->text) {
    if (facts->height > 0) text += ", images of " + std::to_string(facts->height) + " x " + std::to_string(facts->width);
    return line(text);
  }
  char cut[64];
  std::snprintf(cut, sizeof cut, ", %.1f %% truncated at %lld", 100 * facts->share_beyond(length), static_cast<long long>(length));
  line(text + ", median length " + std::to_string(facts->median()) + " tokens" + cut);
  length_histogram(*facts, length, room);
  for (const std::string& row : facts->first) line(row);
}

bool knows_column(const NewRun& form, const std::string& path) { return form.columns() && setting_of(path); }

bool column_combo(const NewRun& form, const std::string& path, std::string& value) {
  const ColumnSetting& setting = *setting_of(path);
  const DataFacts& facts = *form.columns();
  const std::string before = value;
  const bool known = value.empty() && &facts == form.facts();
  const std::string found = facts.read.*setting.name, automatic = !known          ? "automatic"
                                                                  : found.empty() ? "automatic: none"
                                                                                  : "automatic: " + found;
  const bool there = std::find(facts.columns.begin(), facts.columns.end(), value) != facts.columns.end();
  const std::string shown = value.empty() ? automatic : there ? value : value + " (not in the file)";
  const bool open = ImGui::BeginCombo("##value", whole_label(shown).c_str(), ImGuiComboFlags_HeightLarge);
  name_item(setting.path);
  if (!open) return false;
  if (ImGui::Selectable((whole_label(automatic) + "###automatic").c_str(), value.empty())) value.clear();
  name_item("column:");
  ImGui::Separator();
  for (const std::string& column : facts.columns) {
    ImGui::PushID(column.c_str());
    if (ImGui::Selectable((whole_label(column) + "###column").c_str(), column == value)) value = column;
    name_item("column:" + column);
    if (column == facts.likely.*setting.name) {
      ImGui::SameLine();
      small_beside(std::string("probably the ") + setting.what, theme().good);
    }
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return value != before;
}

bool data_combo(UiState& ui, std::string& value, float width) {
  bool chosen = false;
  ImGui::SetNextItemWidth(width);
  if (!ImGui::BeginCombo("##value", value.empty() ? "none" : whole_label(value).c_str(), ImGuiComboFlags_HeightLarge)) return false;
  if (ImGui::Selectable("A file ...")) open_browser(ui, BrowseFor::data);
  if (ImGui::Selectable("A folder ...")) open_browser(ui, BrowseFor::data, Choose::folder);
  ImGui::Separator();
  for (const DataChoice& set : ui.form.data) {
    ImGui::PushID(set.name.c_str());
    if (ImGui::Selectable("##set", set.name == value, 0, {em(24), ImGui::GetTextLineHeight() * 2.1f})) {
      value = set.name;
      chosen = true;
    }
    const ImVec2 after = ImGui::GetCursorPos(), at = ImGui::GetItemRectMin();
    ImGui::SetCursorScreenPos({at.x + em(0.2f), at.y});
    text_fit(set.name, em(14), theme().text);
    ImGui::SameLine();
    chip(set.here ? "here" : ("download, " + mebibytes(static_cast<double>(set.bytes))).c_str(), set.here ? theme().good : theme().dim,
         set.here ? Icon::check : Icon::save);
    push_small();
    ImGui::SetCursorScreenPos({at.x + em(0.2f), at.y + ImGui::GetTextLineHeight() * 1.15f});
    text_fit(set.about, em(23), theme().dim);
    ImGui::PopFont();
    ImGui::SetCursorPos(after);
    ImGui::Dummy({0, 0});
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return chosen;
}

}  // namespace comera::studio
