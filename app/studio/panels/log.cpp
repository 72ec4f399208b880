// What happened in the shown run, newest last; then what the window itself had to say.
#include <algorithm>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {

void draw_log(UiState& ui) {
  const RunView& view = ui.shown();
  if (begin_card("log-card")) {
    card_title("Log");
    ImGui::SameLine(0, em(1));
    push_small();
    static constexpr const char* kLevels[] = {"All", "Warnings", "Errors"};
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.12f)));
    segmented("levels", kLevels, 3, ui.log_level);
    ImGui::SameLine();
    const float width = std::min(em(12), right - ImGui::GetCursorPosX());
    if (width > em(4)) {
      ImGui::SetCursorPosX(right - width);
      ImGui::SetNextItemWidth(width);
      if (std::exchange(ui.find, false)) ImGui::SetKeyboardFocusHere();
      char text[128];
      std::snprintf(text, sizeof text, "%s", ui.log_filter.c_str());
      if (ImGui::InputTextWithHint("##filter", "Filter", text, sizeof text)) ui.log_filter = text;
    }
    ImGui::PopStyleVar();
    std::vector<const LogLine*> lines;
    const auto add = [&](const std::vector<LogLine>& from) {
      for (const LogLine& line : from)
        if (static_cast<int>(line.level) >= (ui.log_level == 0 ? 0 : ui.log_level + 1) &&
            (ui.log_filter.empty() || line.text.find(ui.log_filter) != std::string::npos))
          lines.push_back(&line);
    };
    add(view.log);
    add(ui.window_log);
    ImGui::BeginChild("lines", {0, 0});
    const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
    const float steps = em(4.5f);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(lines.size()));
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const LogLine& line = *lines[static_cast<size_t>(i)];
        const Theme& t = theme();
        const ImU32 color = line.level == Level::error     ? t.bad
                            : line.level == Level::warning ? t.warning
                            : line.level == Level::good    ? t.good
                                                           : t.text;
        const float left = ImGui::GetCursorPosX();
        ImGui::PushFont(fonts().numbers, 0);
        text_right(line.step < 0 ? "window" : thousands(static_cast<double>(line.step)), left + steps, t.dim);
        ImGui::PopFont();
        ImGui::SameLine();
        ImGui::SetCursorPosX(left + steps + em(0.8f));
        text_fit(line.text, ImGui::GetContentRegionAvail().x, color);
        if (!ImGui::BeginPopupContextItem(("line" + std::to_string(i)).c_str())) continue;
        const auto as_text = [](const LogLine& of) {
          return (of.step < 0 ? "window" : "step " + std::to_string(of.step)) + "  " + of.text + "\n";
        };
        if (ImGui::MenuItem("Copy line")) ImGui::SetClipboardText(as_text(line).c_str());
        if (ImGui::MenuItem("Copy all that are shown")) {
          std::string all;
          for (const LogLine* each : lines) all += as_text(*each);
          ImGui::SetClipboardText(all.c_str());
        }
        ImGui::EndPopup();
      }
    if (lines.empty()) {
      if (view.log.empty() && ui.window_log.empty())
        empty_state(Icon::none, "Nothing yet", "Stage switches, checkpoints, edits and problems appear here.");
      else
        empty_state(Icon::none, "Nothing here", "No line fits the filter.");
    }
    if (at_end) ImGui::SetScrollHereY(1);
    ImGui::EndChild();
    ImGui::PopFont();
  }
  end_card();
}

}  // namespace comera::studio
