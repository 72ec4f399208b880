#include "app/studio/runs/run_menu.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "app/studio/actions.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/evaluating.h"
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
    if (ImGui::MenuItem((whole_label(tag) + "###tag-" + tag).c_str(), nullptr, all)) set_tag(ui, ids, tag, !all);
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

// What is chosen while the menu is open.
struct Chosen {
  UiState& ui;
  const std::vector<const RunRow*>& rows;
  const RunRow& one = *rows[0];
  const bool alone = rows.size() == 1;
  const std::string no = no_writing(ui);
  const bool can = no.empty();
  std::vector<std::string> ids;

  Chosen(UiState& ui_state, const std::vector<const RunRow*>& chosen) : ui(ui_state), rows(chosen) {
    for (const RunRow* row : rows) ids.push_back(row->id);
  }
};

// How many runs there are, the error message without hovering, and why nothing can be changed.
void menu_head(const Chosen& c) {
  if (!c.alone) text_dim(std::to_string(c.rows.size()) + " runs");
  if (c.alone && !c.one.message.empty()) {
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(22));
    text_dim(c.one.message);
    ImGui::PopTextWrapPos();
    if (ImGui::MenuItem("Copy error message###copy-message")) ImGui::SetClipboardText(c.one.message.c_str());
    name_item("copy-message");
    ImGui::Separator();
  }
  if (!c.can) text_dim("Read-only: " + c.ui.runs->read_only);
}

void retry_items(const Chosen& c) {
  if (!c.alone || !failed_for_memory(c.one)) return;
  if (ImGui::MenuItem("Halve batch and retry###retry-half", nullptr, false, c.can)) retry_run(c.ui, c.one.id, Retry::half_batch);
  name_item("retry-half");
  if (c.one.device.starts_with("CPU")) return;
  if (ImGui::MenuItem("Train on CPU###retry-cpu", nullptr, false, c.can)) retry_run(c.ui, c.one.id, Retry::on_cpu);
  name_item("retry-cpu");
}

// Opening, resuming, replaying and forking.
void course_items(const Chosen& c) {
  UiState& ui = c.ui;
  const RunRow& one = c.one;
  const bool settled = c.can && c.alone && one.status != "running";
  if (ImGui::MenuItem("Open###open", "Enter", false, c.alone)) open_run(ui, one.id);
  if (ImGui::MenuItem("Resume###resume", nullptr, false, c.can && c.alone && can_resume(one))) resume_run(ui, one.id);
  if (ImGui::BeginMenu("Roll back to step###back", settled && one.summary.step > 0)) {
    const bool back = ask_number("checkpoint at or before", "Roll back", ui.run_table.back_to, 0, one.summary.step);
    text_dim("The later steps are kept as a run");
    if (back) resume_run(ui, one.id, {.at_step = ui.run_table.back_to});
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Extend###extend", settled)) {
    if (ask_number("by steps", "Extend", ui.run_table.extend_by, 1, 1'000'000'000))
      resume_run(ui, one.id, {.extend = ui.run_table.extend_by});
    ImGui::EndMenu();
  }
  retry_items(c);
  if (ImGui::MenuItem("Replay###replay", nullptr, false, c.alone && one.summary.step > 1)) replay_run(ui, one.id);
  name_item("replay");
  if (ImGui::MenuItem("Evaluate ...###evaluate-run", nullptr, false, c.alone && ui.store))
    open_evaluate(ui, ui.store->path(), one.id, one.name);
  name_item("evaluate-run");
  if (ImGui::BeginMenu("Fork at step###fork", c.can && c.alone && one.summary.step > 0)) {
    if (ask_number("step", "Fork", ui.run_table.fork_at, 0, one.summary.step)) fork_run(ui, one.id, {.at_step = ui.run_table.fork_at});
    if (ImGui::MenuItem("With other settings ...###fork-with")) fork_run(ui, one.id, {.at_step = ui.run_table.fork_at, .ask = true});
    name_item("fork-with");
    ImGui::EndMenu();
  }
}

void compare_items(const Chosen& c) {
  UiState& ui = c.ui;
  const bool compared = std::all_of(c.rows.begin(), c.rows.end(), [&](const RunRow* row) { return ui.compare.find(row->id) != nullptr; });
  if (ImGui::MenuItem("Compare###compare", "Space", compared, compared || !ui.compare.full())) toggle_compared(ui, c.rows);
  const bool pinned = c.alone && ui.run_table.baseline == c.one.id;
  if (ImGui::MenuItem(pinned ? "Unpin the baseline###baseline" : "Set as baseline###baseline", nullptr, false, c.alone))
    toggle_baseline(ui, c.one.id);
  name_item("baseline");
}

void label_items(const Chosen& c) {
  const bool starred = std::all_of(c.rows.begin(), c.rows.end(), [](const RunRow* row) { return has_tag(*row, kStar); });
  if (ImGui::MenuItem("Star###star", "S", starred, c.can)) toggle_star(c.ui, c.rows);
  if (ImGui::MenuItem(c.alone ? "Name, tags and notes ...###edit" : "Tags ...###edit", "F2", false, c.can))
    open_dialog(c.ui, Dialog::edit_runs);
  if (ImGui::BeginMenu("Tags###tags", c.can)) {
    tags_menu(c.ui, c.rows, c.ids);
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Colour###color", c.can && c.alone)) {
    color_menu(c.ui, c.one);
    ImGui::EndMenu();
  }
}

void export_items(const Chosen& c) {
  const auto item = [&](const char* label, RunChange::Kind kind, bool possible = true) {
    if (ImGui::MenuItem(label, nullptr, false, possible)) export_runs(c.ui, c.ids, kind);
  };
  item("CSV of all metrics###csv", RunChange::export_csv);
  item("JSON Lines, all records###jsonl", RunChange::export_jsonl);
  item("TensorBoard event files###tfevents", RunChange::export_tfevents);
  item("Chrome trace of the steps###trace", RunChange::export_trace, c.alone);
  ImGui::Separator();
  item("Model as safetensors###model", RunChange::export_model);
  tooltip("The parameters of the last checkpoint.");
  item("Model as Hugging Face folder###huggingface", RunChange::export_huggingface);
  tooltip("config.json, model.safetensors with plain matrices, and the tokenizer, for the transformers library.");
  item("LoRA adapter as PEFT folder###peft", RunChange::export_peft);
  tooltip("Of a run that trained LoRA factors on a model folder: its factors, and other parameters that it changed.");
  item("LLaMA model as GGUF file###gguf", RunChange::export_gguf);
  tooltip("Plain matrices and the tokenizer in one file, for llama.cpp and its like.");
  item("Text classifier for the published program###official", RunChange::export_official);
  tooltip("The parameters with the names of the published PyTorch model, for load_state_dict.");
  ImGui::Separator();
  text_dim("To " + exports_folder(c.ui.exports));
}

void copy_items(const Chosen& c) {
  if (c.alone) copy_cell(c.ui.run_table, c.one);
  if (ImGui::MenuItem("Copy values###copy-values")) ImGui::SetClipboardText(as_table(c.ui.run_table, c.rows).c_str());
  name_item("copy-values");
  if (ImGui::MenuItem(c.alone ? "Copy id###copy" : "Copy ids###copy")) {
    std::string text;
    for (const std::string& id : c.ids) text += (text.empty() ? "" : " ") + id;
    ImGui::SetClipboardText(text.c_str());
  }
}

void removal_items(const Chosen& c) {
  if (c.ui.run_table.archived) {
    if (ImGui::MenuItem("Restore from archive###restore", nullptr, false, c.can)) restore_runs(c.ui, c.ids);
  } else if (ImGui::MenuItem("Archive###archive", "Del", false, c.can)) {
    archive_runs(c.ui, c.ids);
  }
  if (ImGui::MenuItem("Purge ...###purge", nullptr, false, c.can)) open_dialog(c.ui, Dialog::purge_runs);
}

}  // namespace

void draw_run_menu(UiState& ui) {
  const std::vector<const RunRow*> rows = chosen_runs(ui);
  if (rows.empty()) return;
  const Chosen chosen(ui, rows);
  if (ImGui::IsWindowAppearing()) {
    ui.run_table.extend_by = std::max<int64_t>(1, chosen.one.summary.total_steps / 2);
    ui.run_table.fork_at = ui.run_table.back_to = chosen.one.summary.step;
    if (!ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ui.run_table.menu_column = "name";  // opened by a key
  }
  menu_head(chosen);
  course_items(chosen);
  ImGui::Separator();
  compare_items(chosen);
  ImGui::Separator();
  label_items(chosen);
  if (ImGui::BeginMenu("Export###export")) {
    export_items(chosen);
    ImGui::EndMenu();
  }
  copy_items(chosen);
  ImGui::Separator();
  removal_items(chosen);
}

}  // namespace comera::studio
