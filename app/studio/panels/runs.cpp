// The list of stored runs. It is read on another thread and may have thousands of rows. Its columns, filter and actions are in
// app/studio/runs.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_difference.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/runs/run_menu.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {

constexpr const char* kAboutShort = "Runs that ended after fewer than 10 steps. In a filter: tag:short, -tag:short";
static_assert(kShortSteps == 10);

constexpr float kTickWidth = 2.6f, kStarWidth = 1.2f;  // width of the columns, in em
constexpr float kLeastName = 7, kWholeName = 17;       // column of names: least width, and a width that most names need

// Checkbox for the comparison, with the sign that the run has in all plots.
void tick(UiState& ui, const RunRow& row) {
  const ComparedRun* picked = ui.compare.find(row.id);
  const bool can = picked || !ui.compare.full();
  const float size = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::BeginDisabled(!can);
  if (ImGui::InvisibleButton("compare", {em(2.4f), size})) {
    toggle_compared(ui, {&row});
    picked = ui.compare.find(row.id);
  }
  name_item("tick:" + row.id);
  ImGui::EndDisabled();
  const bool hovered = ImGui::IsItemHovered();
  tooltip(
      !can ? "At most eight runs: untick one first"
           : with_key(ui.settings.keys, picked ? "In the comparison: click to remove" : "Add to the comparison", "runs.compare").c_str());
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float box = std::round(size * 0.82f), y = at.y + std::round((size - box) / 2);
  const ImU32 edge = picked ? theme().accent : with_alpha(hovered ? theme().text : theme().dim, can ? 1 : 0.4f);
  list->AddRect({at.x, y}, {at.x + box, y + box}, edge, box * 0.2f, std::max(1.0f, em(0.08f)));
  draw_sample(list, {at.x + box + em(0.35f), y + box / 2}, em(1.1f), shown_slot(ui.compare, row));
  if (!picked) return;
  draw_icon(list, Icon::check, {at.x + box / 2, y + box / 2}, box * 0.72f, theme().accent);
}

void star(UiState& ui, const RunRow& row) {
  const float size = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string no = no_writing(ui);
  if (ImGui::InvisibleButton("star", {em(kStarWidth), size}) && no.empty()) toggle_star(ui, {&row});
  const bool on = has_tag(row, kStar), hovered = ImGui::IsItemHovered() && no.empty();
  tooltip(!no.empty() ? no.c_str() : on ? "Click: remove the star (S)" : "Add a star (S). In a filter: tag:star");
  draw_icon(ImGui::GetWindowDrawList(), on ? Icon::star : Icon::star_empty, {at.x + em(kStarWidth) / 2, at.y + size / 2}, em(0.9f),
            on        ? theme().warning
            : hovered ? theme().text
                      : with_alpha(theme().dim, 0.45f));
}

// The column of differences from the baseline, which is not a field of a run.
const RunField& difference_column() {
  static constexpr RunField kColumn = {
      "difference", "Difference", "against the baseline", 9.6f, true, nullptr, [](const RunRow&) { return std::string(); }};
  return kColumn;
}

void difference_cell(const RunTable& table, const RunRow& row) {
  const RunRow& baseline = *table.baseline_row;
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const RunField& judged = judged_field(table, baseline);
  const RunDifference difference = row.id == baseline.id ? RunDifference() : difference_to(judged, row, baseline);
  const char* words = row.id == baseline.id ? "baseline" : difference.incomparable;
  if (!words) {
    draw_delta(difference.delta);
    if (difference.delta.verdict != Delta::unknown) name_item("difference:" + row.id + ":" + difference.delta.text);
    return;
  }
  push_small();
  text_right(words, right, difference.incomparable ? theme().dim : theme().accent);
  ImGui::PopFont();
  name_item("difference:" + row.id + ":" + words);
  if (difference.incomparable) tooltip(kIncomparable);
}

// Tree line of a fork. The cursor continues after it.
void draw_branch(const Branch& branch) {
  constexpr int kDeepest = 6;  // deeper forks have the indent of this depth
  if (branch.depth == 0) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float pad = ImGui::GetStyle().CellPadding.y, line = ImGui::GetTextLineHeight(), step = em(1.1f);
  const float top = at.y - pad, bottom = at.y + line + pad, middle = std::floor(at.y + line / 2) + 0.5f;
  const int depth = std::min(branch.depth, kDeepest);
  const float weight = std::max(1.0f, em(0.08f));
  const ImU32 color = with_alpha(theme().dim, 0.7f);
  const auto x = [&](int level) { return std::floor(at.x + step * (static_cast<float>(level) - 0.55f)) + 0.5f; };
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (int level = 1; level < depth; ++level)
    if (branch.rails >> level & 1) list->AddLine({x(level), top}, {x(level), bottom}, color, weight);
  list->AddLine({x(depth), top}, {x(depth), branch.last ? middle : bottom}, color, weight);
  list->AddLine({x(depth), middle}, {at.x + step * static_cast<float>(depth), middle}, color, weight);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + step * static_cast<float>(depth) + em(0.2f));
}

// `tell_short`: append the tag "short" to the name, if the tags have no column.
void cell(const RunField& field, const RunRow& row, bool tell_short) {
  const std::string id = field.id;
  if (id == "status") {
    const PhaseLook look = look_of(phase_of(row.status));
    chip(look.text, look.color, look.icon);
    if (!row.message.empty()) tooltip(row.message.c_str());
    return;
  }
  std::string text = field.text(row);
  if (id == "tag" && is_short(row)) text += (text.empty() ? "" : ", ") + std::string(kShort);
  const float room = ImGui::GetContentRegionAvail().x;
  if (!field.number) {
    const float word = tell_short ? ImGui::CalcTextSize(kShort).x + em(0.6f) : 0;
    const bool tells = word > 0 && room - word > em(6);
    text_fit(text, tells ? room - word : room, id == "name" ? theme().text : theme().dim);
    if (!tells) return;
    ImGui::SameLine(0, em(0.5f));
    small_beside(kShort, theme().dim);
    name_item("short:" + row.id);
    return;
  }
  if (text.empty()) text = "-";
  const bool words = id == "started";
  if (words)
    push_small();
  else
    push_numbers(0.93f);
  text_right(text, ImGui::GetCursorPosX() + room, text == "-" || words ? theme().dim : theme().text);
  ImGui::PopFont();
}

bool is_name(const RunField& field) { return std::string(field.id) == "name"; }

void row_of(UiState& ui, const std::vector<const RunField*>& fields, size_t place) {
  RunTable& table = ui.run_table;
  const RunRow& row = *table.rows[place];
  ImGui::PushID(row.id.c_str());
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(1);
  const float ticks_end = ImGui::GetCursorScreenPos().x - ImGui::GetStyle().CellPadding.x;
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::PushStyleColor(ImGuiCol_HeaderHovered, theme().raised);
  if (ImGui::Selectable("##row", table.selected.contains(row.id),
                        ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_AllowOverlap)) {
    const bool by_mouse = ImGui::IsMouseReleased(0) || ImGui::IsMouseDoubleClicked(0);
    if (by_mouse && ImGui::GetMousePos().x < ticks_end) {
      toggle_compared(ui, {&row});
    } else {
      select_run(table, row.id, ImGui::GetIO().KeyCtrl, ImGui::GetIO().KeyShift);
      ui.selected_run = row.id;
      if (ImGui::IsMouseDoubleClicked(0) || ImGui::IsKeyPressed(ImGuiKey_Enter)) open_run(ui, row.id);
    }
  }
  ImGui::PopStyleColor();
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Right) && ImGui::IsItemHovered()) {
    const int over = ImGui::TableGetHoveredColumn() - 2;  // skip the columns of checkbox and star
    table.menu_column = over >= 0 && static_cast<size_t>(over) < fields.size() ? fields[static_cast<size_t>(over)]->id : "";
  }
  if (ImGui::BeginPopupContextItem("menu")) {
    if (!table.selected.contains(row.id)) {
      select_run(table, row.id, false, false);
      ui.selected_run = row.id;
    }
    draw_run_menu(ui);
    ImGui::EndPopup();
  }
  ImGui::SetCursorPos(at);
  star(ui, row);
  ImGui::TableSetColumnIndex(0);
  tick(ui, row);
  for (size_t i = 0; i < fields.size(); ++i) {
    ImGui::TableSetColumnIndex(static_cast<int>(i) + 2);
    if (is_name(*fields[i]) && !table.branches.empty()) draw_branch(table.branches[place]);
    if (fields[i] == &difference_column())
      difference_cell(table, row);
    else
      cell(*fields[i], row, is_name(*fields[i]) && is_short(row) && !table.column_shown("tag"));
    if (i == 0) name_item("run:" + row.id);  // column 0 of the fields, after checkbox and star
  }
  ImGui::PopID();
}

// Header of a column: a click sorts by it, another click reverses the order.
void header(RunTable& table, const RunField& column) {
  const bool differs = &column == &difference_column();
  const RunField& field = differs ? judged_field(table, *table.baseline_row) : column;
  const std::string title = differs ? std::string(field.title) + " vs base" : field.title;
  ImGui::PushID(column.id);
  const bool sorted = !differs && table.sort == field.id;
  const float room = ImGui::GetContentRegionAvail().x, arrow = em(0.8f), width = ImGui::CalcTextSize(title.c_str()).x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("sort", {std::max(1.0f, room), ImGui::GetTextLineHeight()})) {
    table.descending = table.sort == field.id ? !table.descending : field.number != nullptr;
    table.sort = field.id;
  }
  name_item(std::string("column:") + column.id);
  const ImU32 color = sorted || ImGui::IsItemHovered() ? theme().text : theme().dim;
  told("header", differs ? "Difference to the baseline " + table.baseline_row->name
                         : std::string("Click: sort. In a filter: ") + field.id + ", " + field.help);
  const float x = field.number ? std::max(at.x, at.x + room - width) : at.x;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(at, {at.x + room, at.y + ImGui::GetTextLineHeight()}, true);
  list->AddText({std::round(x), at.y}, color, title.c_str());
  if (sorted) {
    const float r = em(0.26f), y = at.y + ImGui::GetTextLineHeight() * 0.55f, up = table.descending ? -1.0f : 1.0f;
    const float ax = field.number ? x - arrow + r : std::min(x + width + r * 1.6f, at.x + room - r);
    list->AddTriangleFilled({ax - r, y + up * r * 0.8f}, {ax + r, y + up * r * 0.8f}, {ax, y - up * r * 0.8f}, color);
  }
  list->PopClipRect();
  ImGui::PopID();
}

void columns_popup(RunTable& table) {
  if (!ImGui::BeginPopup("columns")) return;
  ImGui::Checkbox("Lineage###lineage", &table.lineage);
  name_item("lineage");
  tooltip("Show forks under their parent");
  if (table.short_runs > 0) {
    bool shown = !table.hide_short;
    if (ImGui::Checkbox("Short runs###short-runs", &shown)) table.hide_short = !shown;
    tooltip(kAboutShort);
  }
  ImGui::Separator();
  for (const RunField& field : run_fields()) {
    if (field.width <= 0) continue;
    bool on = table.column_shown(field.id);
    ImGui::BeginDisabled(std::string(field.id) == "name");
    if (ImGui::Checkbox((std::string(field.title) + "###column-" + field.id).c_str(), &on) && !table.toggled_columns.erase(field.id))
      table.toggled_columns.insert(field.id);
    ImGui::EndDisabled();
    tooltip(field.help);
  }
  ImGui::EndPopup();
}

void filters_popup(RunTable& table) {
  if (!ImGui::BeginPopup("filters")) return;
  const bool kept = std::find(table.saved_filters.begin(), table.saved_filters.end(), table.filter) != table.saved_filters.end();
  if (ImGui::MenuItem("Save this filter###keep", nullptr, false, !table.filter.empty() && !kept && table.parsed.problem().empty()))
    table.saved_filters.push_back(table.filter);
  if (ImGui::MenuItem("Delete this filter###forget", nullptr, false, kept)) std::erase(table.saved_filters, table.filter);
  if (!table.saved_filters.empty()) ImGui::Separator();
  for (const std::string& filter : table.saved_filters)
    if (ImGui::MenuItem((whole_label(filter) + "###kept-" + filter).c_str(), nullptr, filter == table.filter)) table.filter = filter;
  ImGui::Separator();
  text_dim("Examples");
  for (const char* example :
       {"tag:star", "accuracy>0.85 and size<2", "status:finished not dense", "lr<1e-3 and age<7", "/late.*0\\.2/", "-tag:short"})
    if (ImGui::MenuItem((std::string(example) + "###example-" + example).c_str())) table.filter = example;
  ImGui::EndPopup();
}

void filter_box(UiState& ui, float width) {
  RunTable& table = ui.run_table;
  const float more = ImGui::GetFrameHeight();
  ImGui::SetNextItemWidth(std::max(em(5), width - more - em(0.2f)));
  if (std::exchange(ui.find, false)) ImGui::SetKeyboardFocusHere();
  char text[256];
  std::snprintf(text, sizeof text, "%s", table.filter.c_str());
  const bool wrong = !table.parsed.problem().empty();
  if (wrong) ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
  if (ImGui::InputTextWithHint("##filter", "Filter: words, /regex/, lr<1e-3 and tag:good", text, sizeof text)) table.filter = text;
  name_item("filter");
  if (wrong) ImGui::PopStyleColor();
  tooltip(wrong ? table.parsed.problem().c_str()
                : "Words match name, id, status, device, tags and notes. Compare columns and settings with < <= > >= = !=; combine with "
                  "and, or, not and brackets. A - before a field negates it.");
  ImGui::SameLine(0, em(0.2f));
  if (button("###filters", {.icon = Icon::more, .tooltip = "Saved filters and examples", .size = {more, 0}})) ImGui::OpenPopup("filters");
  filters_popup(table);
}

// Number of runs that ended after a few steps; a click hides or shows them. If it does not fit up to `right`, use the popup of the columns.
void short_chip(RunTable& table, float right) {
  if (table.short_runs == 0) return;
  const std::string label =
      "short: " + thousands(static_cast<double>(table.short_runs)) + (table.hide_short ? "  show" : "  hide") + "###hide-short";
  const ButtonLook look{.tooltip = kAboutShort};
  ImGui::SameLine();
  push_small();
  if (ImGui::GetCursorPosX() + button_width(label.c_str(), look) <= right && button(label.c_str(), look))
    table.hide_short = !table.hide_short;
  ImGui::PopFont();
}

void toolbar(UiState& ui) {
  RunTable& table = ui.run_table;
  const RunList& list = *ui.runs;
  const float gap = ImGui::GetStyle().ItemSpacing.x, left = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  const float right = left + room;
  const RunRow* chosen = nullptr;
  for (const RunRow& row : list.rows)
    if (row.id == ui.selected_run) chosen = &row;
  // Only icons in a narrow window.
  std::string open = "Open###Open", resume = "Resume###Resume",
              ticked = ui.compare.runs.empty() ? "" : std::to_string(ui.compare.runs.size()),
              compare = (ticked.empty() ? "Compare" : "Compare " + ticked) + "###compare";
  const auto buttons_width = [&] {
    return button_width(open.c_str(), {.icon = Icon::chart}) + button_width(resume.c_str(), {.icon = Icon::play}) +
           button_width(compare.c_str(), {.icon = Icon::check}) + 2 * gap;
  };
  if (buttons_width() + em(8) > room) {
    open = "###Open", resume = "###Resume";
    compare = ticked + "###compare";
  }
  const float buttons = buttons_width();
  ImGui::SameLine();
  const bool hides = table.hide_short && table.short_runs > 0;
  text_dim(table.filter.empty() && !hides ? thousands(static_cast<double>((table.archived ? list.archived : list.rows).size()))
                                          : thousands(static_cast<double>(table.rows.size())) + " of " +
                                                thousands(static_cast<double>((table.archived ? list.archived : list.rows).size())));
  if (table.selected.size() > 1) {
    ImGui::SameLine();
    chip((std::to_string(table.selected.size()) + " selected").c_str(), theme().accent);
  }
  short_chip(table, right - buttons - gap);
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - buttons));
  if (button(open.c_str(),
             {.icon = Icon::chart, .enabled = chosen != nullptr, .tooltip = "Shows the run (Enter)", .why_not = "Select a run first"}))
    open_run(ui, chosen->id);
  ImGui::SameLine();
  const std::string no = no_writing(ui);
  if (button(resume.c_str(), {.icon = Icon::play,
                              .enabled = chosen && can_resume(*chosen) && no.empty(),
                              .tooltip = "Continues from the last checkpoint",
                              .why_not = !no.empty() ? no.c_str()
                                         : chosen    ? "Only stopped or interrupted runs can resume"
                                                     : "Select a run first"}))
    resume_run(ui, chosen->id);
  ImGui::SameLine();
  if (button(compare.c_str(), {.icon = Icon::check,
                               .enabled = ui.compare.runs.size() >= 2,
                               .tooltip = "Shows the ticked runs side by side",
                               .keys = ui.settings.keys.of("layout.compare"),
                               .why_not = "Tick two runs first, at the left of the list"}))
    show_layout(ui, "compare");
  push_small();
  float looks = button_width("Columns", {}) + button_width("Archived", {}) + gap;
  const float sign = export_button_width() + gap;
  const bool exports = room > looks + sign + em(10);  // else by menu or keys
  if (exports) looks += sign;
  filter_box(ui, room - looks - gap);
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - looks));
  if (button("Columns", {.tooltip = "Columns and rows of the list"})) ImGui::OpenPopup("columns");
  columns_popup(table);
  ImGui::SameLine();
  ImGui::PushStyleColor(ImGuiCol_Text, table.archived ? theme().accent : theme().text);
  if (button("Archived", {.enabled = table.archived || !list.archived.empty(),
                          .tooltip = table.archived ? "Back to the other runs" : "Show archived runs",
                          .why_not = "There are no archived runs"})) {
    table.archived = !table.archived;
    table.selected.clear();
  }
  ImGui::PopStyleColor();
  if (exports) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);  // this button has no frame padding
    export_button(ui, "runs");
  }
  ImGui::PopFont();
}

// The shown columns. If there is little room for names, drops default columns, the least important first.
std::vector<const RunField*> fitting_fields(const RunTable& table, float room) {
  const float pad = 2 * ImGui::GetStyle().CellPadding.x;
  std::vector<const RunField*> fields;
  const RunField* judged = table.baseline_row ? &judged_field(table, *table.baseline_row) : nullptr;
  for (const RunField& field : run_fields()) {
    if (table.column_shown(field.id)) fields.push_back(&field);
    if (&field == judged) fields.push_back(&difference_column());
  }
  float taken = em(kTickWidth + kStarWidth) + 3 * pad;
  for (const RunField* field : fields)
    if (!is_name(*field)) taken += em(field->width) + pad;
  for (const char* id : {"id", "peak", "compression", "size", "step", "accuracy", "started"}) {
    if (room - taken >= em(kWholeName)) break;
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const RunField* field) { return std::string(field->id) == id; });
    if (found == fields.end() || table.toggled_columns.contains(id)) continue;
    taken -= em((*found)->width) + pad;
    fields.erase(found);
  }
  return fields;
}

void draw_table(UiState& ui) {
  RunTable& table = ui.run_table;
  const float room = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize, pad = 2 * ImGui::GetStyle().CellPadding.x;
  const std::vector<const RunField*> fields = fitting_fields(table, room);
  // Width of all columns except the name. If the rest is too narrow for a name, the list scrolls horizontally.
  float taken = em(kTickWidth + kStarWidth) + 3 * pad;
  for (const RunField* field : fields)
    if (!is_name(*field)) taken += em(field->width) + pad;
  if (!ImGui::BeginTable("runs", static_cast<int>(fields.size()) + 2,
                         ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerH |
                             ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingFixedFit,
                         {0, 0}, std::max(room, taken + em(kLeastName))))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("Compare", ImGuiTableColumnFlags_NoResize, em(kTickWidth));
  ImGui::TableSetupColumn("Star", ImGuiTableColumnFlags_NoResize, em(kStarWidth));
  ImGuiTable* drawn = ImGui::GetCurrentTable();
  for (size_t i = 0; i < fields.size(); ++i) {
    const RunField& field = *fields[i];
    const ImGuiID id = ImHashStr(field.id);
    ImGuiTableColumn& column = drawn->Columns[static_cast<int>(i) + 2];
    const bool another = column.UserID != id;  // than had this place; Dear ImGui keeps the width of the place
    ImGui::TableSetupColumn(field.title, is_name(field) ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                            is_name(field) ? 1 : em(field.width), id);
    if (another && !is_name(field)) column.WidthRequest = em(field.width);
  }
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  push_small();
  for (size_t i = 0; i < fields.size(); ++i) {
    ImGui::TableSetColumnIndex(static_cast<int>(i) + 2);
    header(table, *fields[i]);
  }
  ImGui::PopFont();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(table.rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) row_of(ui, fields, static_cast<size_t>(i));
  // Dear ImGui marks resizable columns by lines between the headers; these are made invisible, the mouse cursor shows it.
  if (drawn->IsInsideRow) ImGui::TableEndRow(drawn);
  drawn->BorderColorStrong = drawn->BorderColorLight = 0;
  ImGui::EndTable();
}

// The database exists but cannot be listed: the problem and actions.
void store_trouble(UiState& ui) {
  const RunList& list = *ui.runs;
  const char* meaning = "";
  switch (list.fault) {
    case StoreFault::newer:
      meaning = "It is not changed: update this program, or use another database.";
      break;
    case StoreFault::locked:
      meaning = "Another program has locked it. It opens here when the lock ends.";
      break;
    case StoreFault::foreign:
      meaning = "This file is not a database of runs.";
      break;
    case StoreFault::damaged:
      meaning = "The file is damaged and was not changed. All readable rows can be copied into a new one.";
      break;
    case StoreFault::none:
    case StoreFault::other:
      break;
  }
  const bool locked = list.fault == StoreFault::locked;
  banner(locked ? Level::warning : Level::error, list.problem);
  ImGui::PushTextWrapPos(0);
  if (*meaning) ImGui::TextUnformatted(meaning);
  if (!*meaning && !list.hint.empty()) text_dim("Try: " + list.hint);
  ImGui::PopTextWrapPos();
  if (list.fault == StoreFault::damaged) {
    if (button("Salvage ...", {.icon = Icon::save, .primary = true, .tooltip = "Copies all readable rows into a new database"}))
      open_dialog(ui, Dialog::salvage);
    ImGui::SameLine();
  }
  if (locked && ui.store) {
    if (button("Try again", {.primary = true, .tooltip = "Tries to read the database again"})) ui.store->refresh(0);
    ImGui::SameLine();
  }
  if (button("Open another ...", {.tooltip = "Opens another database"})) open_browser(ui, BrowseFor::store);
  if (!ui.store || ui.store->path() == paths::runs_database()) return;
  ImGui::SameLine();
  if (button("Default database", {.tooltip = paths::runs_database().c_str()})) open_store(ui, paths::runs_database());
}

}  // namespace

void draw_runs(UiState& ui) {
  RunTable& table = ui.run_table;
  const RunList& list = *ui.runs;
  handle_keys(ui, KeyScope::runs);
  if (table.archived && list.archived.empty()) table.archived = false;
  update(table, ui.runs);
  ImGui::AlignTextToFramePadding();
  card_title(table.archived ? "Archived runs" : "Runs");
  if (!list.rows.empty() || !list.archived.empty()) toolbar(ui);
  if (!list.problem.empty()) return store_trouble(ui);
  if (!list.read_only.empty()) {
    push_small();
    banner(Level::warning, "This database is read-only: " + list.read_only + ". Runs can be viewed and compared, but not changed" +
                               (list.held ? ", until the lock ends." : "."));
    ImGui::PopFont();
  }
  if (list.rows.empty() && !table.archived) {
    if (ui.store && !list.loaded)
      empty_state(Icon::clock, "Reading the database", ui.store->path().c_str());
    else if (!list.archived.empty())
      empty_state(Icon::chart, "All runs are archived", "Archived above shows them.");
    else if (list.missing && ui.store && (!ui.settings.store.empty() || ui.store->path() != paths::runs_database())) {
      const std::string text = "There is no file " + ui.store->path() + ". The first run creates it, or create it now.";
      bool another = false;
      if (empty_state(Icon::chart, "This database does not exist", text.c_str(), "Create it here###create-store", Icon::plus,
                      "Choose another ...###choose-store", &another))
        create_store(ui);
      if (another) open_browser(ui, BrowseFor::store);
    } else
      empty_state(Icon::chart, "No runs yet", "Run the demo: it trains live and is stored here.");
    return;
  }
  push_small();
  if (!table.parsed.problem().empty()) banner(Level::warning, table.parsed.problem());
  ImGui::PopFont();
  if (table.rows.empty() && table.hide_short && table.filter.empty()) {
    if (empty_state(Icon::search, "All runs are short", "Runs that ended after fewer than 10 steps are hidden.", "Show them###show-short",
                    Icon::check))
      table.hide_short = false;
    return;
  }
  if (table.rows.empty()) {
    if (empty_state(Icon::search, "No match", table.filter.c_str(), "Clear the filter", Icon::cross)) table.filter.clear();
    return;
  }
  draw_table(ui);
}

}  // namespace comera::studio
