// Name, tags and notes of selected runs; and the confirmation before a purge.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

std::vector<std::string> split_tags(const std::string& text) {
  std::vector<std::string> tags;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const size_t from = text.find_first_not_of(' ', at), to = text.find_last_not_of(' ', end == 0 ? 0 : end - 1);
    if (from < end && to != std::string::npos) tags.push_back(text.substr(from, to - from + 1));
    at = end + 1;
  }
  return tags;
}

bool text_line(const char* title, const char* id, std::string& text, const char* hint) {
  push_small();
  text_dim(title);
  ImGui::PopFont();
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, "%s", text.c_str());
  ImGui::SetNextItemWidth(-1);
  const bool done = ImGui::InputTextWithHint(id, hint, buffer, sizeof buffer, ImGuiInputTextFlags_EnterReturnsTrue);
  text = buffer;
  return done;
}

void save(UiState& ui, const std::vector<const RunRow*>& rows) {
  const Dialogs& state = ui.dialogs;
  const std::vector<std::string> tags = split_tags(state.run_tags);
  if (rows.size() > 1) {
    std::vector<std::string> ids;
    for (const RunRow* row : rows) ids.push_back(row->id);
    for (const std::string& tag : tags) set_tag(ui, ids, tag, true);
    return;
  }
  const RunRow& row = *rows[0];
  if (state.run_name != row.name && !state.run_name.empty()) rename_run(ui, row.id, state.run_name);
  for (const std::string& tag : row.tags)
    if (tag != kStar && std::find(tags.begin(), tags.end(), tag) == tags.end()) set_tag(ui, {row.id}, tag, false);
  for (const std::string& tag : tags)
    if (!has_tag(row, tag)) set_tag(ui, {row.id}, tag, true);
  if (state.run_notes != row.notes) set_notes(ui, row.id, state.run_notes);
}

}  // namespace

void draw_edit_runs(UiState& ui) {
  Dialogs& state = ui.dialogs;
  const std::vector<const RunRow*> rows = chosen_runs(ui);
  if (rows.empty()) return close_dialog(ui);  // the runs were deleted meanwhile
  const bool alone = rows.size() == 1;
  std::string ids;
  for (const RunRow* row : rows) ids += row->id + " ";
  const std::array<std::string, 3> stored = {rows[0]->name, alone ? find_run_field("tag")->text(*rows[0]) : "", rows[0]->notes};
  if (state.appearing) {
    const auto draft = state.run_drafts.find(ids);
    const std::array<std::string, 3>& texts = draft == state.run_drafts.end() ? stored : draft->second;
    state.run_name = texts[0], state.run_tags = texts[1], state.run_notes = texts[2];
    ImGui::SetKeyboardFocusHere();
  }
  bool done = false;
  if (alone) done = text_line("Name", "##name", state.run_name, "A name") || done;
  done = text_line(alone ? "Tags" : "Tags to add to all these runs", "##tags", state.run_tags, "good, for the paper") || done;
  if (alone) {
    push_small();
    text_dim("Notes");
    ImGui::PopFont();
    char notes[4096];
    std::snprintf(notes, sizeof notes, "%s", state.run_notes.c_str());
    ImGui::InputTextMultiline("##notes", notes, sizeof notes, {-1, em(8)});
    state.run_notes = notes;
  }
  // Esc and a click beside the dialog close it; what was typed is there when it is opened again.
  if (std::array<std::string, 3> typed = {state.run_name, state.run_tags, state.run_notes}; typed != stored)
    state.run_drafts[ids] = std::move(typed);
  else
    state.run_drafts.erase(ids);
  ImGui::Dummy({0, em(0.2f)});
  if (button("Save###save-runs", {.icon = Icon::check,
                                  .primary = true,
                                  .enabled = !alone || !state.run_name.empty(),
                                  .tooltip = "Enter",
                                  .why_not = "A run needs a name"}) ||
      (done && (!alone || !state.run_name.empty()))) {
    save(ui, rows);
    state.run_drafts.erase(ids);
    close_dialog(ui);
  }
  ImGui::SameLine();
  if (button("Cancel", {.tooltip = "Discards the typed texts"})) {
    state.run_drafts.erase(ids);
    close_dialog(ui);
  }
}

void draw_purge_runs(UiState& ui) {
  Dialogs& state = ui.dialogs;
  const std::vector<const RunRow*> rows = chosen_runs(ui);
  if (rows.empty()) return close_dialog(ui);
  if (state.appearing) {
    state.typed.clear();
    ImGui::SetKeyboardFocusHere();
  }
  const std::string words = purge_words(rows);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(rows.size() == 1 ? "Purging deletes this run and its checkpoints permanently."
                                          : "Purging deletes these runs and their checkpoints permanently.");
  for (size_t i = 0; i < std::min<size_t>(rows.size(), 4); ++i)
    text_dim(rows[i]->id + "  " + rows[i]->name + ", " + rows[i]->status + " at step " +
             thousands(static_cast<double>(rows[i]->summary.step)));
  if (rows.size() > 4) text_dim("... and " + std::to_string(rows.size() - 4) + " more");
  text_dim("To hide runs from the list, archive them instead.");
  ImGui::TextUnformatted(("Type  " + words + "  to confirm:").c_str());
  ImGui::PopTextWrapPos();
  char typed[512];
  std::snprintf(typed, sizeof typed, "%s", state.typed.c_str());
  ImGui::SetNextItemWidth(-1);
  const bool entered = ImGui::InputText("##typed", typed, sizeof typed, ImGuiInputTextFlags_EnterReturnsTrue);
  state.typed = typed;
  ImGui::Dummy({0, em(0.2f)});
  const bool right = state.typed == words;
  ImGui::PushStyleColor(ImGuiCol_Text, right ? theme().bad : theme().dim);
  const bool pressed =
      button("Purge permanently###purge-now", {.icon = Icon::cross, .enabled = right, .why_not = "Type the confirmation first"});
  ImGui::PopStyleColor();
  if ((pressed || entered) && right) {
    std::vector<std::string> ids;
    for (const RunRow* row : rows) ids.push_back(row->id);
    purge_runs(ui, ids);
    close_dialog(ui);
  }
  ImGui::SameLine();
  if (button("Cancel")) close_dialog(ui);
}

}  // namespace comera::studio
