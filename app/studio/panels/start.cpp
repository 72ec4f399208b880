// The first screen: one click to a training demo, a run from a preset, and what was trained before.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

void wrapped(const char* text) {
  ImGui::PushTextWrapPos(0);
  text_dim(text);
  ImGui::PopTextWrapPos();
}

// The buttons of all cards stand on one line, at their bottom.
void to_bottom() {
  const float y = ImGui::GetWindowHeight() - ImGui::GetFrameHeight() - em(0.55f) - ImGui::GetStyle().WindowPadding.y;
  ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY(), y));
}

ImVec2 wide_button() { return {ImGui::GetContentRegionAvail().x, ImGui::GetFrameHeight() + em(0.5f)}; }

// The run that trains here, or did.
void this_session(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  card_title("This session");
  const PhaseLook look = look_of(s.phase);
  chip(look.text, look.color, look.icon);
  ImGui::SameLine();
  text_fit(s.name, ImGui::GetContentRegionAvail().x, theme().text);
  const double share = s.total_steps > 0 ? static_cast<double>(s.step) / static_cast<double>(s.total_steps) : 0;
  progress_bar(static_cast<float>(share), {ImGui::GetContentRegionAvail().x, em(0.4f)}, theme().accent, "");
  wrapped((thousands(static_cast<double>(s.step)) + " of " + thousands(static_cast<double>(s.total_steps)) + " steps").c_str());
  to_bottom();
  if (button("Show it", {.icon = Icon::chart, .size = wide_button()})) show_live(ui);
}

// The newest one of the store. `no`: why it cannot go on here; "" = it can.
void last_run(UiState& ui, const std::string& no) {
  const RunRow& row = ui.runs->rows.front();
  card_title("Last run");
  const PhaseLook look = look_of(phase_of(row.status));
  chip(look.text, look.color, look.icon);
  ImGui::SameLine();
  text_fit(row.name.empty() ? row.id : row.name, ImGui::GetContentRegionAvail().x, theme().text);
  std::string text =
      thousands(static_cast<double>(row.summary.step)) + " of " + thousands(static_cast<double>(row.summary.total_steps)) + " steps";
  if (std::isfinite(row.summary.val_accuracy)) text += ", accuracy " + significant(row.summary.val_accuracy * 100, 3) + " %";
  if (row.summary.compression > 1) text += ", " + significant(row.summary.compression, 3) + " x smaller";
  wrapped(text.c_str());
  const bool resumable = row.status == "interrupted" || row.status == "stopped";
  to_bottom();
  ImVec2 size = wide_button();
  if (resumable) size.x = (size.x - ImGui::GetStyle().ItemSpacing.x) / 2;
  if (button("Open###open-last", {.icon = Icon::chart, .size = size})) open_run(ui, row.id);
  if (!resumable) return;
  ImGui::SameLine();
  if (button("Resume###resume-last",
             {.icon = Icon::play, .enabled = no.empty(), .tooltip = "Go on from its last checkpoint", .why_not = no.c_str(), .size = size}))
    resume_run(ui, row.id);
}

// What was trained elsewhere.
void open_something(UiState& ui) {
  card_title("Open");
  wrapped("A database of runs, or a config file. Either can also be dropped onto this window, at any time.");
  to_bottom();
  const ImVec2 all = wide_button(), half((all.x - ImGui::GetStyle().ItemSpacing.x) / 2, all.y);
  if (button("Database ...###card-open-store",
             {.tooltip = "Show the runs of another database", .keys = ui.settings.keys.of("file.open_store"), .size = half}))
    open_browser(ui, BrowseFor::store);
  ImGui::SameLine();
  if (button("Config ...###card-open-config",
             {.tooltip = "A new run from a config file", .keys = ui.settings.keys.of("file.open_config"), .size = half}))
    open_browser(ui, BrowseFor::config);
}

}  // namespace

void draw_start(UiState& ui) {
  const std::string no = no_writing(ui);
  const float full = ImGui::GetContentRegionAvail().x, wide = std::min(full, em(92));
  const float indent = std::floor((full - wide) / 2);
  const bool tall = ImGui::GetContentRegionAvail().y > em(38);
  if (indent > 0) ImGui::Indent(indent);
  ImGui::Dummy({0, em(tall ? 1.2f : 0)});
  push_large();
  ImGui::TextUnformatted("CoMERA Studio");
  ImGui::PopFont();
  text_dim("Train networks as tensor trains whose ranks shrink while they learn.");
  if (!ui.runs->rows.empty()) {  // else a card offers it
    const ButtonLook look{.tooltip = "Show the runs of another database; it can also be dropped onto this window",
                          .keys = ui.settings.keys.of("file.open_store")};
    ImGui::SameLine();
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), indent + wide - button_width("Open database ...", look)));
    if (button("Open database ...###open-database", look)) open_browser(ui, BrowseFor::store);
  }
  ImGui::Dummy({0, em(tall ? 0.6f : 0)});

  const float gap = ImGui::GetStyle().ItemSpacing.x * 1.4f, width = std::floor((wide - 2 * gap) / 3), height = em(tall ? 10.8f : 9.6f);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, em(0.45f)));
  if (begin_card("card-demo", {width, height}, 0, ImGuiWindowFlags_NoScrollbar)) {
    card_title("Demo");
    wrapped("A small image network on 2,800 pictures of clothes, out of the box. Watch the loss and the ranks fall.");
    to_bottom();
    if (button("Run the demo", {.icon = Icon::play,
                                .primary = true,
                                .enabled = no.empty(),
                                .tooltip = "Starts at once and shows it live",
                                .why_not = no.c_str(),
                                .size = {ImGui::GetContentRegionAvail().x, ImGui::GetFrameHeight() + em(0.5f)}}))
      start_preset(ui, "demo");
  }
  end_card();
  ImGui::SameLine(0, gap);
  if (begin_card("card-preset", {width, height}, 0, ImGuiWindowFlags_NoScrollbar)) {
    card_title("New run");
    wrapped("Every setting of a run, beside what it will take; or a preset as it is.");
    to_bottom();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, ImGui::GetStyle().FramePadding.y + em(0.25f)));
    const float buttons = button_width("Start", {.icon = Icon::play}) + button_width("Settings ...", {});
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - buttons - 2 * ImGui::GetStyle().ItemSpacing.x);
    if (ImGui::BeginCombo("##preset", ui.preset.c_str())) {
      for (const std::string& name : presets())
        if (ImGui::Selectable(name.c_str(), name == ui.preset)) ui.preset = name;
      ImGui::EndCombo();
    }
    ImGui::SameLine();
    if (button("Settings ...", {.tooltip = "Look at its settings first and change them", .keys = ui.settings.keys.of("layout.new")}))
      open_form(ui, ui.preset);
    ImGui::SameLine();
    if (button("Start", {.icon = Icon::play, .enabled = no.empty(), .tooltip = "Start this preset", .why_not = no.c_str()}))
      start_preset(ui, ui.preset);
    ImGui::PopStyleVar();
  }
  end_card();
  ImGui::SameLine(0, gap);
  if (begin_card("card-continue", {width, height}, 0, ImGuiWindowFlags_NoScrollbar)) {
    if (ui.live)
      this_session(ui);
    else if (!ui.runs->rows.empty())
      last_run(ui, no);
    else
      open_something(ui);
  }
  end_card();
  ImGui::PopStyleVar();

  ImGui::Dummy({0, em(0.1f)});
  if (begin_card("card-runs", {wide, 0})) draw_runs(ui);
  end_card();
  if (indent > 0) ImGui::Unindent(indent);
}

}  // namespace comera::studio
