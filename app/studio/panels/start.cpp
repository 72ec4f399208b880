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

}  // namespace

void draw_start(UiState& ui) {
  const float full = ImGui::GetContentRegionAvail().x, wide = std::min(full, em(92));
  const float indent = std::floor((full - wide) / 2);
  const bool tall = ImGui::GetContentRegionAvail().y > em(38);
  if (indent > 0) ImGui::Indent(indent);
  ImGui::Dummy({0, em(tall ? 1.2f : 0)});
  push_large();
  ImGui::TextUnformatted("CoMERA Studio");
  ImGui::PopFont();
  text_dim("Train networks as tensor trains whose ranks shrink while they learn.");
  ImGui::Dummy({0, em(tall ? 0.6f : 0)});

  const float gap = ImGui::GetStyle().ItemSpacing.x * 1.4f, width = std::floor((wide - 2 * gap) / 3), height = em(tall ? 10.8f : 9.6f);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, em(0.45f)));
  if (begin_card("card-demo", {width, height}, 0, ImGuiWindowFlags_NoScrollbar)) {
    card_title("Demo");
    wrapped("A small image network on 2,800 pictures of clothes, out of the box. Watch the loss and the ranks fall.");
    to_bottom();
    if (button("Run the demo", {.icon = Icon::play,
                                .primary = true,
                                .tooltip = "Starts at once and shows it live",
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
    if (button("Start", {.icon = Icon::play, .tooltip = "Start this preset"})) start_preset(ui, ui.preset);
    ImGui::PopStyleVar();
  }
  end_card();
  ImGui::SameLine(0, gap);
  if (begin_card("card-continue", {width, height}, 0, ImGuiWindowFlags_NoScrollbar)) {
    const RunList& list = *ui.runs;
    if (ui.live) {
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
      if (button("Show it", {.icon = Icon::chart, .size = {ImGui::GetContentRegionAvail().x, ImGui::GetFrameHeight() + em(0.5f)}})) {
        show_live(ui);
      }
    } else {
      card_title("Last run");
      if (list.rows.empty()) {
        wrapped("Nothing was trained yet. What you train is stored in one file and appears below.");
      } else {
        const RunRow& row = list.rows.front();
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
        const float half =
            resumable ? (ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ItemSpacing.x) / 2 : ImGui::GetContentRegionAvail().x;
        const ImVec2 size(half, ImGui::GetFrameHeight() + em(0.5f));
        if (button("Open###open-last", {.icon = Icon::chart, .size = size})) open_run(ui, row.id);
        if (resumable) {
          ImGui::SameLine();
          if (button("Resume###resume-last", {.icon = Icon::play, .tooltip = "Go on from its last checkpoint", .size = size}))
            resume_run(ui, row.id);
        }
      }
    }
  }
  end_card();
  ImGui::PopStyleVar();

  ImGui::Dummy({0, em(0.1f)});
  if (begin_card("card-runs", {wide, 0})) draw_runs(ui);
  end_card();
  if (indent > 0) ImGui::Unindent(indent);
}

}  // namespace comera::studio
