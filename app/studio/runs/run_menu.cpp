#include "app/studio/runs/run_menu.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "app/studio/actions.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_difference.h"
#include "app/studio/runs/run_fields.h"

namespace comera::studio {
namespace {

// A number field and a button in a menu; true when the button was pressed.
bool ask_number(const char* label, const char* act, int64_t& value, int64_t low, int64_t high) {
  ImGui::AlignTextToFramePadding();
  text_dim(label);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(7));
  ImGui::InputScalar("##number", ImGuiDataType_S64, &value);
  value = std::clamp(value, low, high);
  ImGui::SameLine();
  const bool pressed = button(act, {.icon = Icon::play, .primary = true});
  if (pressed) ImGui::CloseCurrentPopup();
  return pressed;
}

void tags_menu(UiState& ui, const std::vector<const RunRow*>& rows, const std::vector<std::string>& ids) {
  std::set<std::string> known;
  for (const RunRow& row : ui.runs->rows)
    for (const std::string& tag : row.tags)
      if (tag != kStar) known.insert(tag);
  for (const std::string& tag : known) {
    const bool all = std::all_of(rows.begin(), rows.end(), [&](const RunRow* row) { return has_tag(*row, tag); });
    if (ImGui::MenuItem((tag + "###tag-" + tag).c_str(), nullptr, all)) set_tag(ui, ids, tag, !all);
  }
  if (!known.empty()) ImGui::Separator();
  if (ImGui::MenuItem("Another ...###tag-new")) open_dialog(ui, Dialog::edit_runs);
}

void color_menu(UiState& ui, const RunRow& row) {
  const int now = shown_slot(ui.compare, row);
  for (int slot = 0; slot < static_cast<int>(kMostCompared); ++slot) {
    ImGui::PushID(slot);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::Selectable("##color", slot == now, 0, {em(4), 0})) set_color(ui, row, slot);
    name_item("color:" + std::to_string(slot + 1));
    draw_sample(ImGui::GetWindowDrawList(), {at.x + em(0.2f), at.y + ImGui::GetTextLineHeight() / 2}, em(3.6f), slot);
    ImGui::PopID();
  }
}

// The visible columns with their titles as tab-separated text.
std::string as_table(const RunTable& table, const std::vector<const RunRow*>& rows) {
  std::string text;
  const auto line = [&](const auto& of) {
    std::string cells;
    for (const RunField& field : run_fields())
      if (field.width > 0 && table.column_shown(field.id)) cells += (cells.empty() ? "" : "\t") + of(field);
    text += cells + "\n";
  };
  line([](const RunField& field) { return std::string(field.title); });
  for (const RunRow* row : rows) line([&](const RunField& field) { return field.text(*row); });
  return text;
}

// Copies the value under the mouse when the menu was opened, uncut.
void copy_cell(const RunTable& table, const RunRow& row) {
  const RunField* field = find_run_field(table.menu_column);
  const bool differs = table.menu_column == "difference";
  const std::string text = differs ? difference_text(table, row) : field ? field->text(row) : "";
  if (text.empty()) return;
  constexpr size_t kShown = 24;  // most bytes shown next to the item
  size_t end = kShown;
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a UTF-8 character
  const std::string shown = text.size() > kShown ? text.substr(0, end) + " ..." : text;
  const std::string label = std::string("Copy ") + (differs ? "difference" : field->title) + "###copy-cell";
  if (ImGui::MenuItem(label.c_str(), shown.c_str())) ImGui::SetClipboardText(text.c_str());
  name_item("copy-cell");
}

}  // namespace

void draw_run_menu(UiState& ui) {
  const std::vector<const RunRow*> rows = chosen_runs(ui);
  if (rows.empty()) return;
  const RunRow& one = *rows[0];
  const bool alone = rows.size() == 1;
  std::vector<std::string> ids;
  for (const RunRow* row : rows) ids.push_back(row->id);
  if (ImGui::IsWindowAppearing()) {
    ui.run_table.extend_by = std::max<int64_t>(1, one.summary.total_steps / 2);
    ui.run_table.fork_at = ui.run_table.back_to = one.summary.step;
  }
  if (ImGui::IsWindowAppearing() && !ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ui.run_table.menu_column = "name";  // opened by a key
  const std::string no = no_writing(ui);
  const bool can = no.empty();
  if (!alone) text_dim(std::to_string(rows.size()) + " runs");
  if (alone && !one.message.empty()) {  // shows the error message without hovering
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(22));
    text_dim(one.message);
    ImGui::PopTextWrapPos();
    if (ImGui::MenuItem("Copy error message###copy-message")) ImGui::SetClipboardText(one.message.c_str());
    name_item("copy-message");
    ImGui::Separator();
  }
  if (!can) text_dim("Read-only: " + ui.runs->read_only);
  if (ImGui::MenuItem("Open###open", "Enter", false, alone)) open_run(ui, one.id);
  if (ImGui::MenuItem("Resume###resume", nullptr, false, can && alone && can_resume(one))) resume_run(ui, one.id);
  if (ImGui::BeginMenu("Roll back to step###back", can && alone && one.status != "running" && one.summary.step > 0)) {
    const bool back = ask_number("checkpoint at or before", "Roll back", ui.run_table.back_to, 0, one.summary.step);
    text_dim("The later steps are kept as a run");
    if (back) resume_run(ui, one.id, {.at_step = ui.run_table.back_to});
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Extend###extend", can && alone && one.status != "running")) {
    if (ask_number("by steps", "Extend", ui.run_table.extend_by, 1, 1'000'000'000))
      resume_run(ui, one.id, {.extend = ui.run_table.extend_by});
    ImGui::EndMenu();
  }
  if (alone && failed_for_memory(one)) {
    if (ImGui::MenuItem("Halve batch and retry###retry-half", nullptr, false, can)) retry_run(ui, one.id, Retry::half_batch);
    name_item("retry-half");
    if (!one.device.starts_with("CPU")) {
      if (ImGui::MenuItem("Train on CPU###retry-cpu", nullptr, false, can)) retry_run(ui, one.id, Retry::on_cpu);
      name_item("retry-cpu");
    }
  }
  if (ImGui::MenuItem("Replay###replay", nullptr, false, alone && one.summary.step > 1)) replay_run(ui, one.id);
  name_item("replay");
  if (ImGui::BeginMenu("Fork at step###fork", can && alone && one.summary.step > 0)) {
    if (ask_number("step", "Fork", ui.run_table.fork_at, 0, one.summary.step)) fork_run(ui, one.id, {.at_step = ui.run_table.fork_at});
    if (ImGui::MenuItem("With other settings ...###fork-with")) fork_run(ui, one.id, {.at_step = ui.run_table.fork_at, .ask = true});
    name_item("fork-with");
    ImGui::EndMenu();
  }
  ImGui::Separator();
  const bool compared = std::all_of(rows.begin(), rows.end(), [&](const RunRow* row) { return ui.compare.find(row->id) != nullptr; });
  if (ImGui::MenuItem("Compare###compare", "Space", compared, compared || !ui.compare.full())) toggle_compared(ui, rows);
  const bool pinned = alone && ui.run_table.baseline == one.id;
  if (ImGui::MenuItem(pinned ? "Unpin the baseline###baseline" : "Set as baseline###baseline", nullptr, false, alone))
    toggle_baseline(ui, one.id);
  name_item("baseline");
  ImGui::Separator();
  const bool starred = std::all_of(rows.begin(), rows.end(), [](const RunRow* row) { return has_tag(*row, kStar); });
  if (ImGui::MenuItem("Star###star", "S", starred, can)) toggle_star(ui, rows);
  if (ImGui::MenuItem(alone ? "Name, tags and notes ...###edit" : "Tags ...###edit", "F2", false, can)) open_dialog(ui, Dialog::edit_runs);
  if (ImGui::BeginMenu("Tags###tags", can)) {
    tags_menu(ui, rows, ids);
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Colour###color", can && alone)) {
    color_menu(ui, one);
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Export###export")) {
    if (ImGui::MenuItem("CSV of all metrics###csv")) export_runs(ui, ids, RunChange::export_csv);
    if (ImGui::MenuItem("JSON Lines, all records###jsonl")) export_runs(ui, ids, RunChange::export_jsonl);
    if (ImGui::MenuItem("TensorBoard event files###tfevents")) export_runs(ui, ids, RunChange::export_tfevents);
    if (ImGui::MenuItem("Chrome trace of the steps###trace", nullptr, false, ids.size() == 1))
      export_runs(ui, ids, RunChange::export_trace);
    ImGui::Separator();
    if (ImGui::MenuItem("Model as safetensors###model")) export_runs(ui, ids, RunChange::export_model);
    tooltip("The parameters of the last checkpoint.");
    if (ImGui::MenuItem("Model for PyTorch###official")) export_runs(ui, ids, RunChange::export_official);
    tooltip("The same parameters with the names of the published PyTorch model, for load_state_dict.");
    ImGui::Separator();
    text_dim("To " + exports_folder(ui.exports));
    ImGui::EndMenu();
  }
  if (alone) copy_cell(ui.run_table, one);
  if (ImGui::MenuItem(alone ? "Copy values###copy-values" : "Copy values###copy-values"))
    ImGui::SetClipboardText(as_table(ui.run_table, rows).c_str());
  name_item("copy-values");
  if (ImGui::MenuItem(alone ? "Copy id###copy" : "Copy ids###copy")) {
    std::string text;
    for (const std::string& id : ids) text += (text.empty() ? "" : " ") + id;
    ImGui::SetClipboardText(text.c_str());
  }
  ImGui::Separator();
  if (ui.run_table.archived) {
    if (ImGui::MenuItem("Restore from archive###restore", nullptr, false, can)) restore_runs(ui, ids);
  } else if (ImGui::MenuItem("Archive###archive", "Del", false, can)) {
    archive_runs(ui, ids);
  }
  if (ImGui::MenuItem("Purge ...###purge", nullptr, false, can)) open_dialog(ui, Dialog::purge_runs);
}

}  // namespace comera::studio
