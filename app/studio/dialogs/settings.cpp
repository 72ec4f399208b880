// Settings of the window: appearance, database, and the file with defaults of new runs.
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {

// Draws the caption of a row and moves to the place of its control.
void caption(const char* title, const char* help) {
  const float left = ImGui::GetCursorPosX();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(title);
  if (help) {
    ImGui::SameLine(0, em(0.35f));
    help_marker(help);
  }
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), left + em(10)));
}

// A path, shortened if it is too long for the row.
void path_line(const std::string& path, float room) {
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(fonts().numbers, ImGui::GetStyle().FontSizeBase * 0.87f);
  text_fit(path, room, theme().dim);
  ImGui::PopFont();
}

void alerts(UiState& ui) {
  AlertRules& rules = ui.settings.alerts;
  struct Row {
    AlertRule* rule;
    const char *title, *help;
  };
  const Row rows[] = {
      {&rules.not_finite, "Loss is NaN", "A loss is NaN or infinite. If it is the training loss, the run ends as diverged."},
      {&rules.no_progress, "No progress",
       "The smoothed training loss did not fall below its minimum for this number of steps, and no rank changed."},
      {&rules.collapsed, "Rank is 0", "A bond has no live entries: its layer outputs 0."},
      {&rules.memory_margin, "Low memory",
       "Free memory of the device (of the machine on a CPU), with all programs counted; checked about once a second."},
  };
  const float left = ImGui::GetCursorPosX() + em(10);
  bool first = true;
  for (const Row& row : rows) {
    if (std::exchange(first, false))
      caption("Alerts", "An alert is an event of the run: it appears as a message, in the timeline, in the log and in the status bar.");
    else
      ImGui::SetCursorPosX(left);
    ImGui::PushID(row.title);
    ImGui::Checkbox(row.title, &row.rule->on);
    ImGui::SameLine(0, em(0.35f));
    help_marker(row.help);
    ImGui::SameLine();
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), left + em(10)));
    ImGui::BeginDisabled(!row.rule->on);
    ImGui::Checkbox("and pause", &row.rule->pause);
    ImGui::EndDisabled();
    ImGui::PopID();
  }
  ImGui::SetCursorPosX(left);
  ImGui::AlignTextToFramePadding();
  text_dim("after");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(6));
  ImGui::InputScalar("##patience", ImGuiDataType_S64, &rules.patience);
  rules.patience = std::max<int64_t>(1, rules.patience);
  ImGui::SameLine();
  text_dim("steps without progress");
  ImGui::SetCursorPosX(left);
  ImGui::AlignTextToFramePadding();
  text_dim("below");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(6));
  auto margin = static_cast<int>(std::lround(100 * rules.margin));
  if (ImGui::SliderInt("##margin", &margin, 1, 50, "%d %%", ImGuiSliderFlags_AlwaysClamp)) rules.margin = margin / 100.0;
  ImGui::SameLine();
  text_dim("of the memory free");
}

void section() { ImGui::Dummy({0, em(0.4f)}); }

// The width of a slider that leaves `beside` to what follows it.
void slider_width(float beside = em(1)) { ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - beside)); }

void theme_row(UiState& ui) {
  caption("Theme",
          "High contrast: text and borders at 7:1, curves at 4.5:1. Desktop: follows the desktop, read at the start and whenever this "
          "window gets the focus; dark if the desktop reports no theme.");
  static constexpr const char* kNames[] = {"Dark", "Light", "High contrast", "Desktop"};
  int kind = ui.settings.theme_of_desktop ? 3 : static_cast<int>(ui.settings.theme);
  if (!segmented("theme", kNames, 4, kind)) return;
  if (kind == 3)
    follow_desktop_theme(ui);
  else
    set_theme(ui, static_cast<ThemeKind>(kind));
}

void text_size_row(UiState& ui) {
  std::string keys;
  for (const char* action : {"scale.larger", "scale.smaller", "scale.normal"})
    if (const std::string key = key_text(ui.settings.keys.of(action)); !key.empty()) keys += (keys.empty() ? "" : ", ") + key;
  caption("Text size", ("Relative to the scale of the monitor" + (keys.empty() ? "." : " (" + keys + ").")).c_str());
  // Takes effect on release, because scaling moves the slider away from the mouse.
  slider_width(em(5));
  float& scale = ui.dialogs.scale;
  if (ui.dialogs.appearing || scale <= 0) scale = ui.settings.user_scale;
  ImGui::SliderFloat("##scale", &scale, 0.75f, 3, "%.2f x", ImGuiSliderFlags_AlwaysClamp);
  if (ImGui::IsItemDeactivatedAfterEdit() && std::isfinite(scale)) set_user_scale(ui, scale);
  if (!ImGui::IsItemActive()) scale = ui.settings.user_scale;
  ImGui::SameLine();
  if (button("1 x", {.enabled = ui.settings.user_scale != 1})) set_user_scale(ui, 1);
}

void drawing_rows(UiState& ui) {
  caption("Line width", "Of curves, relative to the default; also in exported charts.");
  slider_width(em(5));
  float line_width = ui.settings.line_width;
  if (ImGui::SliderFloat("##line-width", &line_width, 0.5f, 3, "%.1f x", ImGuiSliderFlags_AlwaysClamp) && std::isfinite(line_width))
    ui.settings.line_width = line_width;

  caption("Markers", "Shapes that distinguish curves without colour; also in exported charts.");
  ImGui::Checkbox("on compared runs", &ui.settings.line_markers);

  caption("Frame rate", "Maximum. A third of it if the CPU that draws also trains.");
  slider_width();
  ImGui::SliderInt("##fps", &ui.settings.max_fps, 1, 60, "%d", ImGuiSliderFlags_AlwaysClamp);

  caption("Idle frame rate", "Frames per second while a run trains and there is no input. Higher values slow down training.");
  slider_width();
  ImGui::SliderInt("##training-fps", &ui.settings.training_fps, 1, 60, "%d", ImGuiSliderFlags_AlwaysClamp);

  caption("CPU share",
          "Most of one core that drawing may use: after a slow frame, the next one waits and leaves the time to training. Also limits the "
          "response to input.");
  slider_width();
  auto percent = static_cast<int>(std::lround(100 * ui.settings.gui_share));
  if (ImGui::SliderInt("##share", &percent, 5, 100, "%d %%", ImGuiSliderFlags_AlwaysClamp)) ui.settings.gui_share = percent / 100.0;
}

void checkpoint_row(UiState& ui) {
  caption("Checkpoints",
          "Minutes between checkpoints of runs in this window. 0: the setting of the run applies. A live run takes the value as an edit; "
          "its other intervals stay.");
  slider_width();
  const double none = 0, most = 120;
  double minutes = ui.settings.autosave_minutes;
  if (ImGui::SliderScalar("##autosave", ImGuiDataType_Double, &minutes, &none, &most, minutes > 0 ? "every %.0f min" : "setting of the run",
                          ImGuiSliderFlags_AlwaysClamp) &&
      std::isfinite(minutes))
    ui.settings.autosave_minutes = minutes;
  if (!ImGui::IsItemDeactivatedAfterEdit()) return;
  ui.settings.autosave_minutes = std::round(ui.settings.autosave_minutes);
  autosave(ui);
}

void database_row(UiState& ui, float room) {
  caption("Database", "The file that stores all runs. Checkpoints are in the same folder. A live run stays in its database.");
  const std::string store = ui.store ? ui.store->path() : "nothing is stored";
  path_line(store, room);
  ImGui::SetCursorPosX(em(10));
  if (button("Open ...", {.tooltip = "Open an existing database"})) open_browser(ui, BrowseFor::store);
  ImGui::SameLine();
  const bool usual = store == paths::runs_database();
  if (button("Default", {.enabled = !usual, .tooltip = paths::runs_database().c_str(), .why_not = "The default database is open"}))
    open_store(ui, paths::runs_database());
}

void run_defaults_row(float room) {
  caption("Run defaults", nullptr);
  path_line(paths::config_file(), room);
  ImGui::SetCursorPosX(em(10));
  if (button("Copy path")) ImGui::SetClipboardText(paths::config_file().c_str());
  ImGui::SetCursorPosX(em(10));
  push_small();
  ImGui::PushTextWrapPos(0);
  ImGui::BeginGroup();
  text_dim(
      "This file sets the device, threads and other settings of new runs, here and on the command line. Settings of a preset override it. "
      "Example:");
  text_dim("{\"train\": {\"device\": \"cpu\", \"threads\": 2}}");
  ImGui::EndGroup();
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
}

void reset_row(UiState& ui) {
  caption("Reset",
          "Resets theme, text size, frame rates, alerts, checkpoints and dialogs on this page. Keys and layouts have their own reset.");
  if (button("Reset these settings###reset-settings", {.icon = Icon::rewind, .tooltip = "All settings above except the database"}))
    use_shipped_settings(ui);
}

void draw_window_settings(UiState& ui) {
  ImGui::BeginChild("settings-list", {0, 0}, ImGuiChildFlags_NavFlattened);
  theme_row(ui);
  text_size_row(ui);
  drawing_rows(ui);
  section();
  alerts(ui);
  section();
  checkpoint_row(ui);

  caption("File dialog", "Uses zenity or kdialog if installed, otherwise a dialog in this window.");
  ImGui::Checkbox("desktop dialog", &ui.settings.desktop_dialogs);

  caption("External runs",
          "Runs that another program starts in the database. During replay or in the form of a new run, only a message appears.");
  ImGui::Checkbox("show the newest", &ui.settings.follow_newest);

  section();
  const float room = ImGui::GetContentRegionAvail().x - em(10);
  database_row(ui, room);
  section();
  run_defaults_row(room);
  section();
  reset_row(ui);
  ImGui::EndChild();
}

}  // namespace

void draw_settings(UiState& ui) {
  static constexpr const char* kPages[] = {"Window and runs", "Keys"};
  if (segmented("page", kPages, 2, ui.dialogs.settings_page)) ui.dialogs.key_change = {};
  ImGui::Dummy({0, em(0.2f)});
  if (ui.dialogs.settings_page == 1)
    draw_key_settings(ui);
  else
    draw_window_settings(ui);
}

}  // namespace comera::studio
