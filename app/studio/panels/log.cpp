// Events of the shown run, newest last, then messages of the window. In a replay, lines after the cursor are dimmed or hidden.
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

using Lines = std::vector<const LogLine*>;

std::string as_text(const LogLine& line) {
  return (line.step < 0 ? "window" : "step " + std::to_string(line.step)) + "  " + line.text + "\n";
}

void copy(const Lines& lines) {
  std::string all;
  for (const LogLine* line : lines) all += as_text(*line);
  ImGui::SetClipboardText(all.c_str());
}

// The line is after the replay cursor.
bool is_later(const UiState& ui, const LogLine& line) { return ui.replaying() && line.step > ui.snapshot().step; }

bool fits(const LogView& log, const LogLine& line) {
  if (static_cast<int>(line.level) < (log.level == 0 ? 0 : log.level + 1)) return false;
  return log.filter.fits(line.text);
}

void more_menu(const UiState& ui, const Lines& lines) {
  if (!ImGui::BeginPopup("log-menu")) return;
  if (ImGui::MenuItem("Copy shown lines###copy-log", nullptr, false, !lines.empty())) copy(lines);
  name_item("copy-log");
  if (ui.log_file) {
    ImGui::Separator();
    text_dim("Log file");
    ImGui::TextUnformatted(ui.log_file->path().c_str());
    name_item("says:" + ui.log_file->path());
    if (ImGui::MenuItem("Copy path of the log file")) ImGui::SetClipboardText(ui.log_file->path().c_str());
    name_item("copy-log-path");
  }
  ImGui::EndPopup();
}

void toolbar(UiState& ui, const Lines& lines) {
  LogView& log = ui.log;
  static constexpr const char* kLevels[] = {"All", "Warnings", "Errors"};
  const float left = ImGui::GetCursorPosX(), right = left + ImGui::GetContentRegionAvail().x;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.12f)));
  const bool past = ui.replaying();
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const ButtonLook more{.icon = Icon::more, .tooltip = "Copy lines; log file"};
  const float buttons = (past ? button_width("Later", {}) + gap : 0) + button_width("Follow", {}) + button_width("", more) + 2 * gap;
  float levels = 0;
  for (const char* level : kLevels) levels += ImGui::CalcTextSize(level).x + em(1.2f);
  if (levels + (past ? buttons : 0) < right - left) {  // otherwise there is room for the buttons only
    segmented("levels", kLevels, 3, log.level);
    ImGui::SameLine();
  }
  const float width = std::min(em(12), right - ImGui::GetCursorPosX() - buttons);
  if (width > em(4)) {
    ImGui::SetCursorPosX(right - width - buttons);
    filter_box(log.filter, "Filter or /regex/", "Lines with these words, in any case; a regular expression between slashes: /prune|late/",
               width, std::exchange(ui.find, false));
    ImGui::SameLine();
  }
  if (right - ImGui::GetCursorPosX() + 1 >= buttons - gap) {
    const auto on_off = [](const char* label, bool& on, const char* tip_on, const char* tip_off) {
      ImGui::PushStyleColor(ImGuiCol_Text, on ? theme().accent : theme().dim);
      if (button(label, {.tooltip = on ? tip_on : tip_off})) on = !on;
      ImGui::PopStyleColor();
      ImGui::SameLine();
    };
    if (past)
      on_off("Later###log-later", log.later, "On: lines after the cursor are dimmed. Click to hide them",
             "Off: lines after the cursor are hidden. Click to show them, dimmed");
    on_off(
        "Follow###follow-log", log.follow,
        past ? "On: the list follows the cursor. Click to stop" : "On: the list follows the newest line. Click to stop",
        past ? "Off: the list does not move. Click to follow the cursor" : "Off: the list does not move. Click to follow the newest line");
    if (button("###log-more", more)) ImGui::OpenPopup("log-menu");
    more_menu(ui, lines);
  } else {
    ImGui::NewLine();
  }
  ImGui::PopStyleVar();
}

void draw_line(const LogLine& line, const Lines& all, bool later) {
  const Theme& t = theme();
  const ImU32 color = later                          ? t.dim
                      : line.level == Level::error   ? t.bad
                      : line.level == Level::warning ? t.warning
                      : line.level == Level::good    ? t.good
                                                     : t.text;
  const float left = ImGui::GetCursorPosX(), steps = em(4.5f);
  ImGui::PushFont(fonts().numbers, 0);
  text_right(line.step < 0 ? "window" : thousands(static_cast<double>(line.step)), left + steps, t.dim);
  ImGui::PopFont();
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + steps + em(0.8f));
  text_fit(line.text, ImGui::GetContentRegionAvail().x, color);
  name_item("log:" + line.text);
  if (!ImGui::BeginPopupContextItem("line")) return;
  if (ImGui::MenuItem("Copy line")) ImGui::SetClipboardText(as_text(line).c_str());
  if (ImGui::MenuItem("Copy shown lines")) copy(all);
  ImGui::EndPopup();
}

}  // namespace

void draw_log(UiState& ui) {
  const RunView& view = ui.shown();
  LogView& log = ui.log;
  if (begin_card("log-card")) {
    card_title("Log");
    ImGui::SameLine(0, em(1));
    push_small();
    Lines lines;
    for (const std::vector<LogLine>* from : {&view.log, static_cast<const std::vector<LogLine>*>(&ui.window_log)})
      for (const LogLine& line : *from)
        if (fits(log, line) && (log.later || !is_later(ui, line))) lines.push_back(&line);
    const auto first_later = std::find_if(lines.begin(), lines.end(), [&](const LogLine* line) { return is_later(ui, *line); });
    const auto happened = static_cast<int>(first_later - lines.begin());  // number of lines before the first one after the cursor
    toolbar(ui, lines);
    ImGui::BeginChild("lines", {0, 0});
    // Scrolling up ends following; scrolling to the end starts it again.
    if (ImGui::IsWindowHovered() && ImGui::GetIO().MouseWheel > 0) log.follow = false;
    if (ImGui::IsWindowHovered() && ImGui::GetIO().MouseWheel < 0 && ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1) log.follow = true;
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(lines.size()));
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        ImGui::PushID(i);
        if (i == happened && i > 0) {  // the cursor is between these lines
          const ImVec2 at = ImGui::GetCursorScreenPos();
          const float y = at.y - std::round(ImGui::GetStyle().ItemSpacing.y / 2);
          ImGui::GetWindowDrawList()->AddLine({at.x, y}, {at.x + ImGui::GetContentRegionAvail().x, y}, theme().warning);
        }
        const LogLine& line = *lines[static_cast<size_t>(i)];
        draw_line(line, lines, is_later(ui, line));
        ImGui::PopID();
      }
    if (lines.empty()) {
      if (view.log.empty() && ui.window_log.empty())
        empty_state(Icon::none, "Nothing yet", "Stage switches, checkpoints, edits and problems appear here.");
      else
        empty_state(Icon::none, "No match", "No line matches the filter.");
    }
    if (log.follow && happened < static_cast<int>(lines.size()))
      ImGui::SetScrollY(static_cast<float>(happened) * ImGui::GetTextLineHeightWithSpacing() - ImGui::GetWindowHeight() * 0.6f);
    else if (log.follow)
      ImGui::SetScrollHereY(1);
    ImGui::EndChild();
    ImGui::PopFont();
  }
  end_card();
}

}  // namespace comera::studio
