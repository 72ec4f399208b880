// Command palette: fuzzy search over all actions, presets and recent runs.
#include <imgui_internal.h>

#include <algorithm>
#include <cctype>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

constexpr size_t kRecentRuns = 50;

// The table of actions, then presets and recent runs.
std::vector<Action> entries(const UiState& ui) {
  std::vector<Action> all = actions(ui);
  for (const std::string& name : presets()) {
    all.push_back({.id = "new." + name, .title = "New run from " + name, .act = [name](UiState& state) { open_form(state, name); }});
    all.push_back({.id = "start." + name, .title = "Start " + name, .act = [name](UiState& state) { start_preset(state, name); }});
  }
  const std::vector<RunRow>& rows = ui.runs->rows;
  for (size_t i = 0; i < std::min(rows.size(), kRecentRuns); ++i) {
    const std::string& id = rows[i].id;
    all.push_back({.id = "open." + id,
                   .title = "Open run " + (rows[i].name.empty() ? id : rows[i].name + "  " + id),
                   .act = [id](UiState& state) { open_run(state, id); }});
  }
  return all;
}

int no_history(ImGuiInputTextCallbackData*) { return 0; }  // Up and Down move in the list instead

}  // namespace

int fuzzy_score(const std::string& typed, const std::string& text) {
  constexpr int kNone = -1, kChar = 1, kWord = 8, kRow = 6;
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  // best[i]: score of the query so far with its last character at text[i].
  std::vector<int> best(text.size(), kNone), next(text.size());
  bool first = true;
  for (const char c : typed) {
    if (c == ' ') continue;
    int before = first ? 0 : kNone;  // best score of the previous characters that ends before text[i]
    for (size_t i = 0; i < text.size(); ++i) {
      next[i] = kNone;
      if (before != kNone && lower(text[i]) == lower(c)) {
        const bool word = i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]));
        const int row = !first && i > 0 && best[i - 1] != kNone ? best[i - 1] + kRow : kNone;
        next[i] = std::max(before, row) + kChar + (word ? kWord : 0);
      }
      if (!first) before = std::max(before, best[i]);
    }
    best.swap(next);
    first = false;
  }
  if (first) return 0;
  const int score = best.empty() ? kNone : *std::max_element(best.begin(), best.end());
  return score == kNone ? -1 : score * 100 - static_cast<int>(std::min<size_t>(text.size(), 99));
}

void draw_palette(UiState& ui) {
  Dialogs& state = ui.dialogs;
  std::vector<Action> all = entries(ui);
  std::vector<std::pair<int, size_t>> found;  // best score first, then in the order of the table
  const auto search = [&] {
    found.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      const int score = state.query.empty() ? 0 : fuzzy_score(state.query, all[i].title);
      if (score >= 0) found.push_back({-score, i});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  };
  if (state.appearing) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  char text[128];
  std::snprintf(text, sizeof text, "%s", state.query.c_str());
  bool act = ImGui::InputTextWithHint("##query", "Type a command, a run or a preset", text, sizeof text,
                                      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory, no_history);
  if (state.query != text) {
    state.query = text;
    state.chosen = 0;
  }
  search();
  const int last = static_cast<int>(found.size()) - 1;
  const int moved = (ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : 0) - (ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? 1 : 0) +
                    (ImGui::IsKeyPressed(ImGuiKey_PageDown) ? 10 : 0) - (ImGui::IsKeyPressed(ImGuiKey_PageUp) ? 10 : 0);
  state.chosen = std::clamp(state.chosen + moved, 0, std::max(0, last));
  ImGui::BeginChild("found", {0, 0}, 0, ImGuiWindowFlags_NoNav);
  for (int i = 0; i <= last; ++i) {
    const Action& action = all[found[static_cast<size_t>(i)].second];
    const bool can = action.why_not.empty();
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    ImGui::PushID(action.id.c_str());
    if (ImGui::Selectable("##entry", i == state.chosen, ImGuiSelectableFlags_AllowOverlap | ImGuiSelectableFlags_NoAutoClosePopups)) {
      state.chosen = i;
      act = true;
    }
    if (i == state.chosen && (moved != 0 || state.appearing)) ImGui::SetScrollHereY(moved > 0 ? 0.9f : 0.1f);
    ImGui::SameLine(em(0.4f));
    const std::string keys = key_text(action.keys);
    const std::string note = !can ? action.why_not : action.checked.value_or(false) ? "on" : "";
    push_small();
    const float width = ImGui::CalcTextSize((keys + note).c_str()).x + em(keys.empty() || note.empty() ? 0.6f : 1.8f);
    ImGui::PopFont();
    text_fit(action.title, std::max(em(8), right - ImGui::GetCursorPosX() - width), can ? theme().text : theme().dim);
    push_small();
    ImGui::SameLine();
    text_right(note + (keys.empty() || note.empty() ? "" : "   ") + keys, right - em(0.3f), theme().dim);
    ImGui::PopFont();
    ImGui::PopID();
  }
  if (found.empty()) text_dim("No match. Try fewer letters.");
  ImGui::EndChild();
  if (!act || found.empty()) return;
  const Action& action = all[found[static_cast<size_t>(state.chosen)].second];
  if (!action.why_not.empty()) return;  // the reason is shown next to it
  close_dialog(ui);                     // close first: the action may open another dialog
  action.act(ui);
}

}  // namespace comera::studio
