// The runs of the store, newest first: one list that is read on another thread and may be thousands of rows long.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/named_items.h"
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

void toggle_compared(UiState& ui, const RunRow& row) {
  if (ui.compare.find(row.id))
    unpick_run(ui.compare, row.id);
  else
    pick_run(ui.compare, row.id);
}

// The tick of a run that is compared, in its colour and dash.
void tick(UiState& ui, const RunRow& row) {
  const ComparedRun* picked = ui.compare.find(row.id);
  const bool can = picked || !ui.compare.full();
  const float size = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::BeginDisabled(!can);
  if (ImGui::InvisibleButton("compare", {em(2.4f), size})) toggle_compared(ui, row);
  name_item("tick:" + row.id);
  ImGui::EndDisabled();
  const bool hovered = ImGui::IsItemHovered();
  tooltip(!can     ? "Eight runs at most are compared: untick one first"
          : picked ? "Compared: click to take it out"
                   : "Compare it with others");
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float box = std::round(size * 0.82f), y = at.y + std::round((size - box) / 2);
  const ImU32 edge = picked ? theme().accent : with_alpha(hovered ? theme().text : theme().dim, can ? 1 : 0.4f);
  list->AddRect({at.x, y}, {at.x + box, y + box}, edge, box * 0.2f, std::max(1.0f, em(0.08f)));
  if (!picked) return;
  draw_icon(list, Icon::check, {at.x + box / 2, y + box / 2}, box * 0.72f, theme().accent);
  draw_sample(list, {at.x + box + em(0.35f), y + box / 2}, em(1.1f), picked->slot);
}

void row_of(UiState& ui, const RunRow& row) {
  const RunSummary& s = row.summary;
  ImGui::PushID(row.id.c_str());
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(1);
  const bool chosen = ui.selected_run == row.id;
  const float ticks_end = ImGui::GetCursorScreenPos().x - ImGui::GetStyle().CellPadding.x;
  ImGui::PushStyleColor(ImGuiCol_HeaderHovered, theme().raised);
  if (ImGui::Selectable("##row", chosen,
                        ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_AllowOverlap)) {
    const bool by_mouse = ImGui::IsMouseReleased(0) || ImGui::IsMouseDoubleClicked(0);
    const bool beside_tick = by_mouse && ImGui::GetMousePos().x < ticks_end;
    if (!beside_tick) ui.selected_run = row.id;
    if (ImGui::GetIO().KeyCtrl || beside_tick)
      toggle_compared(ui, row);
    else if (ImGui::IsMouseDoubleClicked(0) || ImGui::IsKeyPressed(ImGuiKey_Enter))
      open_run(ui, row.id);
  }
  ImGui::PopStyleColor();
  name_item("run:" + row.id);
  if (ImGui::BeginPopupContextItem("menu")) {
    ui.selected_run = row.id;
    if (ImGui::MenuItem("Open")) open_run(ui, row.id);
    if (ImGui::MenuItem("Resume", nullptr, false, row.status == "interrupted" || row.status == "stopped")) resume_run(ui, row.id);
    const bool compared = ui.compare.find(row.id) != nullptr;
    if (ImGui::MenuItem("Compare", "Ctrl+click", compared, compared || !ui.compare.full())) toggle_compared(ui, row);
    if (ImGui::MenuItem("Set as baseline", nullptr, false, compared || !ui.compare.full())) {
      pick_run(ui.compare, row.id);
      set_baseline(ui.compare, row.id);
    }
    if (ImGui::MenuItem("Copy its id")) ImGui::SetClipboardText(row.id.c_str());
    ImGui::EndPopup();
  }
  ImGui::SameLine(0, 0);
  const PhaseLook look = look_of(phase_of(row.status));
  chip(look.text, look.color, look.icon);
  if (!row.message.empty()) tooltip(row.message.c_str());
  ImGui::TableSetColumnIndex(0);
  tick(ui, row);
  ImGui::TableSetColumnIndex(2);
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
    const std::string compare = "Compare " + std::to_string(ui.compare.runs.size()) + "###compare";
    const float filter = em(13), buttons = button_width("Open", {.icon = Icon::chart}) + button_width("Resume", {.icon = Icon::play}) +
                                           button_width(compare.c_str(), {.icon = Icon::check}) + 3 * ImGui::GetStyle().ItemSpacing.x;
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
    if (button(compare.c_str(), {.icon = Icon::check,
                                 .enabled = ui.compare.runs.size() >= 2,
                                 .tooltip = "Show the ticked runs side by side (Ctrl+3)",
                                 .why_not = "Tick two runs first, at the left of the list"}))
      show_layout(ui, "compare");
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
  if (!ImGui::BeginTable("runs", 10,
                         ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerH |
                             ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_Hideable))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  const bool wide = right > em(68);
  ImGui::TableSetupColumn("Compare", ImGuiTableColumnFlags_NoHide, em(2.6f));
  ImGui::TableSetupColumn("Status", 0, em(7));
  ImGui::TableSetupColumn("Name", 0, std::max(em(6), right - em(wide ? 62.2f : 54.7f)));
  ImGui::TableSetupColumn("Id", 0, em(5));
  ImGui::TableSetupColumn("Step", 0, em(wide ? 9 : 7.9f));
  ImGui::TableSetupColumn("Accuracy", 0, em(4.7f));
  ImGui::TableSetupColumn("Size", 0, em(5.6f));
  ImGui::TableSetupColumn("Smaller", 0, em(4.4f));
  ImGui::TableSetupColumn("Peak memory", 0, em(6.4f));
  ImGui::TableSetupColumn("Started", 0, em(5.2f));
  if (ImGui::IsWindowAppearing()) ImGui::TableSetColumnEnabled(3, wide);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  push_small();
  for (int column = 1; column < 10; ++column) {
    ImGui::TableSetColumnIndex(column);
    const char* name = ImGui::TableGetColumnName(column);
    if (column >= 4)
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
