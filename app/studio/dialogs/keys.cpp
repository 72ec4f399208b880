// All keys, grouped by menu, from the table of actions.
#include <algorithm>

#include "app/studio/action_table.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

float key_width(const std::string& keys) {
  push_numbers(0.9f);
  const float width = ImGui::CalcTextSize(keys.c_str()).x;
  ImGui::PopFont();
  return std::max(em(6.5f), width) + em(0.6f);
}

// Long titles wrap.
void row(const std::string& what, const std::string& keys, float width) {
  const float left = ImGui::GetCursorPosX(), key = key_width(keys);
  push_numbers(0.9f);
  ImGui::PushStyleColor(ImGuiCol_Text, theme().accent);
  ImGui::TextUnformatted(keys.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + key);
  ImGui::PushTextWrapPos(left + width);
  ImGui::TextUnformatted(what.c_str());
  ImGui::PopTextWrapPos();
}

}  // namespace

void draw_keys(UiState& ui) {
  const std::vector<Action> all = actions(ui);
  ImGui::BeginChild("all-keys");
  const float full = ImGui::GetContentRegionAvail().x;
  const float gap = em(0.8f);
  float widest = 0;
  for (const Action& action : all)
    if (action.keys != 0) widest = std::max(widest, key_width(key_text(action.keys)) + ImGui::CalcTextSize(action.title.c_str()).x);
  const int columns = std::clamp(static_cast<int>(full / (widest + gap)), 1, 3);
  const float width = full / static_cast<float>(columns) - gap;
  if (ImGui::BeginTable("columns", columns)) {
    ImGui::TableNextRow();
    // Each menu goes into the column that is shortest so far.
    std::vector<int> lines(static_cast<size_t>(columns));
    std::vector<std::vector<int>> menus(static_cast<size_t>(columns));
    for (int i = 0; i < kMenus; ++i) {
      const auto shortest = static_cast<size_t>(std::min_element(lines.begin(), lines.end()) - lines.begin());
      const auto count = std::count_if(all.begin(), all.end(), [&](const Action& a) { return a.keys && static_cast<int>(a.menu) == i; });
      if (count == 0) continue;
      menus[shortest].push_back(i);
      lines[shortest] += static_cast<int>(count) + 2;
    }
    for (const std::vector<int>& column : menus) {
      ImGui::TableNextColumn();
      for (const int menu : column) {
        card_title(title_of(static_cast<Menu>(menu)));
        for (const Action& action : all)
          if (action.keys != 0 && static_cast<int>(action.menu) == menu) row(action.title, key_text(action.keys), width);
        if (static_cast<Menu>(menu) == Menu::timeline) {
          push_small();
          ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
          text_dim("Keys of the timeline work while it is active: click it or go to it with Ctrl+Tab.");
          ImGui::PopTextWrapPos();
          ImGui::PopFont();
        }
        ImGui::Dummy({0, em(0.5f)});
      }
    }
    ImGui::EndTable();
  }
  if (button("Change keys ...", {.tooltip = "Assign other keys to actions"})) change_keys(ui);
  push_small();
  ImGui::PushTextWrapPos(0);
  text_dim(
      "Ctrl+Tab moves between panels, Tab and the arrows between controls. Enter activates a control, Esc closes a dialog. Alt moves to "
      "the menus and back; the Menu key opens the context menu of the focused control. While a text field has the focus, letters are "
      "typed.");
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ImGui::EndChild();
}

}  // namespace comera::studio
