// What belongs to the window and not to a run: looks, where runs are kept, and where the defaults of every run come from.
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/widgets.h"
#include "app/studio/ui_state.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {

// The caption of a line, and the place of what stands beside it.
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

// A path that may be longer than its line.
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
      {&rules.not_finite, "A loss is NaN", "Or infinite. A run whose training loss is ends by itself, as diverged."},
      {&rules.no_progress, "No progress", "For so many steps the smoothed training loss is not under its lowest, and no rank has changed."},
      {&rules.collapsed, "A rank is 0", "A bond without live entries: its layer passes nothing through."},
      {&rules.memory_margin, "Little memory is free",
       "Of the device, on a CPU of the machine, with what all programs take; looked at about once a second."},
  };
  const float left = ImGui::GetCursorPosX() + em(10);
  bool first = true;
  for (const Row& row : rows) {
    if (std::exchange(first, false))
      caption("Alerts", "Each becomes an event of the run: a toast, a sign in the timeline, a line of the log, counted in the status bar.");
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

void draw_window_settings(UiState& ui) {
  ImGui::BeginChild("settings-list", {0, 0}, ImGuiChildFlags_NavFlattened);
  caption("Theme",
          "High contrast: text and borders at 7:1, lines of data at 4.5:1. As the desktop: asked at the start and whenever this "
          "window gets the keyboard; dark where nothing tells it.");
  static constexpr const char* kNames[] = {"Dark", "Light", "High contrast", "As the desktop"};
  int kind = ui.settings.theme_of_desktop ? 3 : static_cast<int>(ui.settings.theme);
  if (segmented("theme", kNames, 4, kind)) {
    if (kind == 3)
      follow_desktop_theme(ui);
    else
      set_theme(ui, static_cast<ThemeKind>(kind));
  }

  std::string keys;
  for (const char* action : {"scale.larger", "scale.smaller", "scale.normal"})
    if (const std::string key = key_text(ui.settings.keys.of(action)); !key.empty()) keys += (keys.empty() ? "" : ", ") + key;
  caption("Size of the text", ("Times that of the monitor" + (keys.empty() ? "." : " (" + keys + ").")).c_str());
  // Takes effect when it is let go: the slider would move away under the mouse.
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(5)));
  float& scale = ui.dialogs.scale;
  if (ui.dialogs.appearing || scale <= 0) scale = ui.settings.user_scale;
  ImGui::SliderFloat("##scale", &scale, 0.75f, 3, "%.2f x", ImGuiSliderFlags_AlwaysClamp);
  if (ImGui::IsItemDeactivatedAfterEdit()) set_user_scale(ui, scale);
  if (!ImGui::IsItemActive()) scale = ui.settings.user_scale;
  ImGui::SameLine();
  if (button("1 x", {.enabled = ui.settings.user_scale != 1})) set_user_scale(ui, 1);

  caption("Width of lines", "Of curves, times the usual one; in the charts that are exported too.");
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(5)));
  ImGui::SliderFloat("##line-width", &ui.settings.line_width, 0.5f, 3, "%.1f x", ImGuiSliderFlags_AlwaysClamp);

  caption("Markers", "Shapes that tell lines apart without their colours; in the charts that are exported too.");
  ImGui::Checkbox("on compared runs", &ui.settings.line_markers);

  caption("Frames a second", "At most; a third of them where the processor that draws trains as well.");
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(1)));
  ImGui::SliderInt("##fps", &ui.settings.max_fps, 1, 60, "%d", ImGuiSliderFlags_AlwaysClamp);

  caption("Looks at a run", "A second, while it trains and nobody does anything. More of them take more of what it trains with.");
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(1)));
  ImGui::SliderInt("##training-fps", &ui.settings.training_fps, 1, 60, "%d", ImGuiSliderFlags_AlwaysClamp);

  caption("Share of a core",
          "That drawing may take at most: after a frame that was slow to draw, the next one waits. What runs train with is "
          "theirs then. Input is drawn at the same pace.");
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(1)));
  auto percent = static_cast<int>(std::lround(100 * ui.settings.gui_share));
  if (ImGui::SliderInt("##share", &percent, 5, 100, "%d %%", ImGuiSliderFlags_AlwaysClamp)) ui.settings.gui_share = percent / 100.0;

  ImGui::Dummy({0, em(0.4f)});
  alerts(ui);

  ImGui::Dummy({0, em(0.4f)});
  caption("Checkpoints",
          "Minutes between two of them, of runs that train in this window. 0: as their own settings say. A run that trains gets "
          "it as an edit like one made by hand; its other intervals stay.");
  ImGui::SetNextItemWidth(std::min(em(12), ImGui::GetContentRegionAvail().x - em(1)));
  const double none = 0, most = 120;
  ImGui::SliderScalar("##autosave", ImGuiDataType_Double, &ui.settings.autosave_minutes, &none, &most,
                      ui.settings.autosave_minutes > 0 ? "every %.0f min" : "as the run says", ImGuiSliderFlags_AlwaysClamp);
  if (ImGui::IsItemDeactivatedAfterEdit()) {
    ui.settings.autosave_minutes = std::round(ui.settings.autosave_minutes);
    autosave(ui);
  }

  caption("Choosing files", "With zenity or kdialog where one of them is installed; else inside of this window.");
  ImGui::Checkbox("in the desktop's dialog", &ui.settings.desktop_dialogs);

  caption("Runs of others",
          "That another program begins in the store. While the past or the form of a new run is shown they are only told.");
  ImGui::Checkbox("show the newest", &ui.settings.follow_newest);

  ImGui::Dummy({0, em(0.4f)});
  caption("Runs are kept in", "The database of runs. Checkpoints lie beside it. A run that trains stays where it began.");
  const std::string store = ui.store ? ui.store->path() : "nothing is stored";
  const float room = ImGui::GetContentRegionAvail().x;
  path_line(store, room);
  ImGui::SetCursorPosX(em(10));
  if (button("Another ...", {.tooltip = "Open a database that is there already"})) open_browser(ui, BrowseFor::store);
  ImGui::SameLine();
  const bool usual = store == paths::runs_database();
  if (button("The usual one", {.enabled = !usual, .tooltip = paths::runs_database().c_str(), .why_not = "It is the usual one"}))
    open_store(ui, paths::runs_database());

  ImGui::Dummy({0, em(0.4f)});
  caption("Defaults of runs", nullptr);
  path_line(paths::config_file(), room);
  ImGui::SetCursorPosX(em(10));
  if (button("Copy the path")) ImGui::SetClipboardText(paths::config_file().c_str());
  ImGui::SetCursorPosX(em(10));
  push_small();
  ImGui::PushTextWrapPos(0);
  ImGui::BeginGroup();
  text_dim(
      "Device, threads and every other setting that new runs begin with come from this file, here and on the command line. A preset's own "
      "settings count more. For example:");
  text_dim("{\"train\": {\"device\": \"cpu\", \"threads\": 2}}");
  ImGui::EndGroup();
  ImGui::PopTextWrapPos();
  ImGui::PopFont();

  ImGui::Dummy({0, em(0.4f)});
  caption("As shipped", "Theme, size of the text, frames, alerts, checkpoints and dialogs of this page. Keys and layouts have their own.");
  if (button("Reset these settings###reset-settings", {.icon = Icon::rewind, .tooltip = "Everything above but the database"}))
    use_shipped_settings(ui);
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
