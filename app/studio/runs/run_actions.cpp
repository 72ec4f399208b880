#include "app/studio/runs/run_actions.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/runs/run_fields.h"

namespace comera::studio {
namespace {

constexpr double kUndoSeconds = 10;

std::string count_of(size_t runs) { return runs == 1 ? "1 run" : std::to_string(runs) + " runs"; }

void change(UiState& ui, RunChange::Kind kind, std::vector<std::string> ids, std::string text = "") {
  if (!ui.store || ids.empty()) return;
  RunChange change{kind, std::move(ids), std::move(text), {}};
  if (kind == RunChange::purge)
    for (const std::string& id : change.runs)
      for (const std::vector<RunRow>* rows : {&ui.runs->rows, &ui.runs->archived})
        for (const RunRow& row : *rows)
          if (row.id == id) change.names.push_back(row.name);
  ui.store->change(std::move(change));
}

}  // namespace

std::vector<const RunRow*> chosen_runs(const UiState& ui) { return selected_rows(ui.run_table); }

void rename_run(UiState& ui, const std::string& id, const std::string& name) { change(ui, RunChange::rename, {id}, name); }
void set_tag(UiState& ui, const std::vector<std::string>& ids, const std::string& tag, bool on) {
  if (on && tag == kShort)
    return toast(ui, Level::info, "Runs of fewer than " + std::to_string(kShortSteps) + " steps get the tag short automatically");
  change(ui, on ? RunChange::add_tag : RunChange::remove_tag, ids, tag);
}
void set_notes(UiState& ui, const std::string& id, const std::string& notes) { change(ui, RunChange::notes, {id}, notes); }

void toggle_star(UiState& ui, const std::vector<const RunRow*>& rows) {
  const bool all = std::all_of(rows.begin(), rows.end(), [](const RunRow* row) { return has_tag(*row, kStar); });
  std::vector<std::string> ids;
  for (const RunRow* row : rows)
    if (all || !has_tag(*row, kStar)) ids.push_back(row->id);
  set_tag(ui, ids, kStar, !all);
}

void toggle_compared(UiState& ui, const std::vector<const RunRow*>& rows) {
  const bool all = std::all_of(rows.begin(), rows.end(), [&](const RunRow* row) { return ui.compare.find(row->id) != nullptr; });
  for (const RunRow* row : rows)
    if (all)
      unpick_run(ui.compare, row->id);
    else
      pick_run(ui.compare, row->id);
}

int shown_slot(const Compare& compare, const RunRow& row) {
  if (const ComparedRun* picked = compare.find(row.id)) return picked->slot;
  if (const int chosen = slot_of_tags(row.tags); chosen >= 0) return chosen;
  const auto had = compare.slots.find(row.id);
  return had != compare.slots.end() ? had->second : slot_of(row.id);
}

void set_color(UiState& ui, const RunRow& row, int slot) {
  const int before = slot_of_tags(row.tags);
  if (before == slot) return;
  const std::string id = row.id;
  choose_slot(ui.compare, id, slot);
  if (before >= 0) set_tag(ui, {id}, color_tag(before), false);
  set_tag(ui, {id}, color_tag(slot), true);
}

void toggle_baseline(UiState& ui, const std::string& id) {
  std::string& pinned = ui.run_table.baseline;
  if (pinned == id) return pinned.clear();
  pinned = id;
  pick_run(ui.compare, id);
  if (ui.compare.find(id)) set_baseline(ui.compare, id);
}

void archive_runs(UiState& ui, const std::vector<std::string>& ids) {
  if (!ui.store || ids.empty()) return;
  change(ui, RunChange::archive, ids);
  add_toast(ui, {Level::info,
                 count_of(ids.size()) + " archived, not deleted. The button Archived above the list shows archived runs.",
                 ImGui::GetTime() + kUndoSeconds,
                 "archived",
                 {{"Undo", [ids](UiState& state) { change(state, RunChange::restore, ids); }}}});
}

void restore_runs(UiState& ui, const std::vector<std::string>& ids) { change(ui, RunChange::restore, ids); }

void purge_runs(UiState& ui, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) unpick_run(ui.compare, id);
  change(ui, RunChange::purge, ids);
}

std::string purge_words(const std::vector<const RunRow*>& rows) {
  return rows.size() == 1 ? rows[0]->name : "purge " + count_of(rows.size());
}

void create_store(UiState& ui) {
  if (ui.store) ui.store->change({.kind = RunChange::create});
}

void export_runs(UiState& ui, const std::vector<std::string>& ids, RunChange::Kind as) { change(ui, as, ids, exports_folder(ui.exports)); }

std::string work_text(const RunChange& change) {
  const std::string runs = count_of(change.runs.size());
  switch (change.kind) {
    case RunChange::rename:
      return "renaming " + runs;
    case RunChange::add_tag:
    case RunChange::remove_tag:
      return "tagging " + runs;
    case RunChange::notes:
      return "writing notes of " + runs;
    case RunChange::archive:
      return "archiving " + runs;
    case RunChange::restore:
      return "restoring " + runs;
    case RunChange::purge:
      return "permanently deleting " + runs;
    case RunChange::create:
      return "creating the database";
    case RunChange::export_csv:
    case RunChange::export_jsonl:
    case RunChange::export_tfevents:
    case RunChange::export_trace:
    case RunChange::export_model:
    case RunChange::export_official:
    case RunChange::export_huggingface:
    case RunChange::export_peft:
    case RunChange::export_gguf:
      break;
  }
  return "exporting " + runs + " to " + change.text;
}

void tick_runs(UiState& ui) {
  if (!ui.store) return;
  for (const RunChanged& done : ui.store->changed()) {
    if (!done.problem.empty()) {
      toast(ui, Level::error, done.problem);
    } else if (done.given_up) {
      toast(
          ui, Level::info,
          "Given up: " + work_text(done.change) + ". " + std::to_string(done.done) + " of " + count_of(done.change.runs.size()) + " done");
    } else if (done.change.kind == RunChange::purge) {
      toast(ui, Level::good,
            count_of(done.change.runs.size()) + " purged, " + mebibytes(static_cast<double>(done.bytes)) + " of checkpoints deleted");
    } else if (!done.written.empty()) {
      toast(ui, Level::good,
            "Written: " + done.written +
                (done.difference >= 0 ? "; read again, no logit differs by more than " + significant(done.difference, 3) : ""));
    }
  }
  ui.store->want_settings(ui.run_table.parsed.settings());
}

}  // namespace comera::studio
