// The runs of the store, newest first: one list that is read on another thread and may be thousands of rows long.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool fits(const RunRow& row, const std::string& filter) {
  if (filter.empty()) return true;
  std::string text = row.name + " " + row.id + " " + row.status + " " + row.device;
  for (const std::string& tag : row.tags) text += " " + tag;
  return lower(text).find(filter) != std::string::npos;
}

std::string ago(double time) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(), seconds = now - time;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return std::to_string(static_cast<int>(seconds / 60)) + " min ago";
  if (seconds < 86400) return std::to_string(static_cast<int>(seconds / 3600)) + " h ago";
  return std::to_string(static_cast<int>(seconds / 86400)) + " d ago";
}

std::string known(double value, const std::string& text) { return std::isfinite(value) ? text : "-"; }

void number(const std::string& text) {
  push_numbers(0.93f);
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, text == "-" ? theme().dim : theme().text);
  ImGui::PopFont();
}

void row_of(UiState& ui, const RunRow& row) {
  const RunSummary& s = row.summary;
  ImGui::PushID(row.id.c_str());
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool chosen = ui.selected_run == row.id;
  ImGui::PushStyleColor(ImGuiCol_HeaderHovered, theme().raised);
  if (ImGui::Selectable("##row", chosen,
                        ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_AllowOverlap)) {
    ui.selected_run = row.id;
    if (ImGui::IsMouseDoubleClicked(0) || ImGui::IsKeyPressed(ImGuiKey_Enter)) open_run(ui, row.id);
  }
  ImGui::PopStyleColor();
  if (ImGui::BeginPopupContextItem("menu")) {
    ui.selected_run = row.id;
    if (ImGui::MenuItem("Open")) open_run(ui, row.id);
    if (ImGui::MenuItem("Resume", nullptr, false, row.status == "interrupted" || row.status == "stopped")) resume_run(ui, row.id);
    if (ImGui::MenuItem("Copy its id")) ImGui::SetClipboardText(row.id.c_str());
    ImGui::EndPopup();
  }
  ImGui::SameLine(0, 0);
  const PhaseLook look = look_of(phase_of(row.status));
  chip(look.text, look.color, look.icon);
  if (!row.message.empty()) tooltip(row.message.c_str());
  ImGui::TableNextColumn();
  text_fit(row.name.empty() ? row.id : row.name, ImGui::GetContentRegionAvail().x, theme().text);
  ImGui::TableNextColumn();
  text_dim(row.id);
  ImGui::TableNextColumn();
  number(s.total_steps > 0 ? thousands(static_cast<double>(s.step)) + " / " + thousands(static_cast<double>(s.total_steps))
                           : thousands(static_cast<double>(s.step)));
  ImGui::TableNextColumn();
  char accuracy[32];
  std::snprintf(accuracy, sizeof accuracy, "%.1f %%", s.val_accuracy * 100);
  number(known(s.val_accuracy, accuracy));
  ImGui::TableNextColumn();
  number(known(s.bytes, mebibytes(s.bytes)));
  ImGui::TableNextColumn();
  number(known(s.compression, significant(s.compression, 3) + " x"));
  ImGui::TableNextColumn();
  number(known(s.peak_bytes, mebibytes(s.peak_bytes)));
  ImGui::TableNextColumn();
  push_small();
  text_right(ago(row.created), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
  ImGui::PopFont();
  ImGui::PopID();
}

}  // namespace

void draw_runs(UiState& ui) {
  const RunList& list = *ui.runs;
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::AlignTextToFramePadding();
  card_title("Runs");
  if (!list.rows.empty()) {
    ImGui::SameLine();
    text_dim(thousands(static_cast<double>(list.rows.size())));
    ImGui::SameLine();
    const RunRow* chosen = nullptr;
    for (const RunRow& row : list.rows)
      if (row.id == ui.selected_run) chosen = &row;
    const bool resumable = chosen && (chosen->status == "interrupted" || chosen->status == "stopped");
    const float filter = em(13), buttons = button_width("Open", {.icon = Icon::chart}) + button_width("Resume", {.icon = Icon::play}) +
                                           2 * ImGui::GetStyle().ItemSpacing.x;
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - filter - buttons));
    if (button("Open",
               {.icon = Icon::chart, .enabled = chosen != nullptr, .tooltip = "Show its curves (Enter)", .why_not = "Choose a run first"}))
      open_run(ui, chosen->id);
    ImGui::SameLine();
    if (button("Resume", {.icon = Icon::play,
                          .enabled = resumable,
                          .tooltip = "Go on from its last checkpoint",
                          .why_not = chosen ? "Only a run that was stopped or interrupted" : "Choose a run first"}))
      resume_run(ui, chosen->id);
    ImGui::SameLine();
    ImGui::SetNextItemWidth(std::max(em(5), right - ImGui::GetCursorPosX()));
    if (std::exchange(ui.find, false)) ImGui::SetKeyboardFocusHere();
    char text[128];
    std::snprintf(text, sizeof text, "%s", ui.run_filter.c_str());
    if (ImGui::InputTextWithHint("##filter", "Name, id, status or tag", text, sizeof text)) ui.run_filter = text;
  }
  if (!list.problem.empty()) {
    banner(Level::error, list.problem);
    return;
  }
  if (list.rows.empty()) {
    if (ui.store && !list.loaded)
      empty_state(Icon::clock, "Reading the store", ui.store->path().c_str());
    else
      empty_state(Icon::chart, "No runs yet", "Run the demo: it trains in front of you and is kept here.");
    return;
  }
  std::vector<const RunRow*> rows;
  const std::string filter = lower(ui.run_filter);
  for (const RunRow& row : list.rows)
    if (fits(row, filter)) rows.push_back(&row);
  if (rows.empty()) {
    empty_state(Icon::search, "No run fits", "Clear the filter to see all of them.");
    return;
  }
  if (!ImGui::BeginTable("runs", 9,
                         ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerH |
                             ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_Hideable))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  const bool wide = right > em(68);
  ImGui::TableSetupColumn("Status", 0, em(7));
  ImGui::TableSetupColumn("Name", 0, std::max(em(6), right - em(wide ? 58.5f : 51)));
  ImGui::TableSetupColumn("Id", 0, em(5));
  ImGui::TableSetupColumn("Step", 0, em(wide ? 9 : 7.9f));
  ImGui::TableSetupColumn("Accuracy", 0, em(4.7f));
  ImGui::TableSetupColumn("Size", 0, em(5.6f));
  ImGui::TableSetupColumn("Smaller", 0, em(4.4f));
  ImGui::TableSetupColumn("Peak memory", 0, em(6.4f));
  ImGui::TableSetupColumn("Started", 0, em(5.2f));
  if (ImGui::IsWindowAppearing()) ImGui::TableSetColumnEnabled(2, wide);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  push_small();
  for (int column = 0; column < 9; ++column) {
    ImGui::TableSetColumnIndex(column);
    const char* name = ImGui::TableGetColumnName(column);
    if (column >= 3)
      text_right(name, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
    else
      text_dim(name);
  }
  ImGui::PopFont();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) row_of(ui, *rows[static_cast<size_t>(i)]);
  ImGui::EndTable();
}

}  // namespace comera::studio
