// The line at the bottom: device, memory of the process, state of the store, time of a frame.
#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {

void draw_status(UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  push_small();
  ImGui::SetCursorPosY((ImGui::GetWindowHeight() - ImGui::GetTextLineHeight()) / 2);
  const auto gap = [] { ImGui::SameLine(0, em(1.6f)); };
  text_dim(s.device.empty() ? "CPU" : s.device);
  gap();
  text_dim("process " + mebibytes(static_cast<double>(ui.process_bytes)));
  if (ui.has_run()) {
    gap();
    if (!s.store_problem.empty()) {
      chip("not saved", theme().bad, Icon::warning);
      tooltip(s.store_problem.c_str());
    } else if (ui.shown().live && ui.shown().store.empty()) {
      text_dim("not stored");
    } else if (s.run.empty()) {
      text_dim(has_ended(s.phase) ? "not stored" : "not stored yet");
    } else {
      const std::string saved =
          s.last_checkpoint_step >= 0 ? ", checkpoint of step " + thousands(static_cast<double>(s.last_checkpoint_step)) : "";
      text_dim((s.name.empty() ? "run" : s.name) + "  " + s.run + ": saved" + saved);
    }
  }
  if (ui.load_request != 0 && ui.store && ui.store->progress() > 0) {
    gap();
    char reading[48];
    std::snprintf(reading, sizeof reading, "reading the run: %.0f %%", 100 * ui.store->progress());
    chip(reading, theme().accent, Icon::clock);
  }
  if (!ui.ending.empty()) {
    gap();
    chip("an earlier run is writing its checkpoint", theme().warning, Icon::clock);
  }
  const std::vector<LogLine>& log = ui.shown().log;
  const auto alerts = std::count_if(log.begin(), log.end(), [](const LogLine& line) { return line.level >= Level::warning; });
  if (alerts > 0) {
    gap();
    chip((std::to_string(alerts) + (alerts == 1 ? " alert" : " alerts")).c_str(), theme().warning, Icon::warning);
    tooltip("See the log");
    if (ImGui::IsItemClicked()) ImGui::SetWindowFocus("Log###log");
  }
  char frame[32];
  std::snprintf(frame, sizeof frame, "frame %.1f ms", ui.frame_ms);
  const float width = ImGui::CalcTextSize(frame).x, edge = ImGui::GetWindowWidth() - em(0.9f);
  ImGui::SameLine();
  if (edge - width > ImGui::GetCursorPosX() + em(1))
    text_right(frame, edge, theme().dim);
  else
    ImGui::NewLine();
  ImGui::PopFont();
}

}  // namespace comera::studio
