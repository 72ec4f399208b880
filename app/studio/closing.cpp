#include "app/studio/closing.h"

#include <imgui.h>

#include "app/format.h"
#include "app/studio/ui_state.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

constexpr double kPatience = 10;  // seconds until quitting at once is offered

std::string step_text(int64_t step) { return thousands(static_cast<double>(step)); }

std::string checkpoint_text(const Snapshot& s) {
  return s.last_checkpoint_step >= 0 ? "Its last checkpoint is of step " + step_text(s.last_checkpoint_step) + "."
                                     : "It has no checkpoint yet.";
}

void stay(UiState& ui) {
  ui.close_requested = false;
  ImGui::CloseCurrentPopup();
}

void ask(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  ImGui::Text("Run %s is at step %s of %s.", s.name.c_str(), step_text(s.step).c_str(), step_text(s.total_steps).c_str());
  text_dim(checkpoint_text(s));
  ImGui::Dummy({0, em(0.4f)});
  if (button("Checkpoint and quit", {.icon = Icon::save, .primary = true})) ui.live->stop(true);
  ImGui::SameLine();
  if (button("Quit without checkpoint")) ui.live->stop(false);
  ImGui::SameLine();
  if (button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
}

void wait(UiState& ui) {
  Closing& closing = ui.closing;
  if (closing.since == 0) closing.since = ImGui::GetTime();
  const double waited = ImGui::GetTime() - closing.since;
  std::string text = "Finishing the step and writing the checkpoint ...";
  if (waited >= 2) text += " " + duration(waited);
  ImGui::TextUnformatted(text.c_str());
  const bool long_time = waited > kPatience || closing.insisted;
  if (long_time && ui.live) {
    const int64_t step = ui.live->view().snapshot->last_checkpoint_step;
    text_dim(step >= 0 ? "Quitting now keeps the checkpoint of step " + step_text(step) + ": the run can be resumed from there."
                       : "Quitting now keeps no checkpoint: resuming the run begins at its first step.");
  }
  ImGui::Dummy({0, em(0.3f)});
  if (button("Keep the window open")) stay(ui);
  if (!long_time) return;
  ImGui::SameLine();
  if (button("Quit now", {.tooltip = "Without waiting for the run"})) ui.quit = closing.at_once = true;
}

void tell_unsaved(UiState& ui, const std::string& problem) {
  ImGui::TextUnformatted("The run has ended, but not all of it is saved.");
  ImGui::PushTextWrapPos(em(30));
  text_dim(problem);
  text_dim(checkpoint_text(*ui.live->view().snapshot));
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.3f)});
  if (button("Keep the window open", {.primary = true}) || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
  ImGui::SameLine();
  if (button("Quit anyway")) ui.quit = true;
}

}  // namespace

void draw_close_dialog(UiState& ui) {
  if (!ui.close_requested) {
    ui.closing = {};
    return;
  }
  const std::string unsaved = ui.live && ui.live->wants_checkpoint() ? ui.live->view().snapshot->store_problem : "";
  if (!ui.training() && unsaved.empty()) {
    ui.quit = true;
    return;
  }
  constexpr const char* kTitle = "Quit while training?###quit";
  if (!ImGui::IsPopupOpen(kTitle)) ImGui::OpenPopup(kTitle);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1.2f), em(1)));
  if (ImGui::BeginPopupModal(kTitle, nullptr, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings)) {
    if (!ui.training())
      tell_unsaved(ui, unsaved);
    else if (ui.live && !ui.live->view().ended() && !ui.live->stopping())
      ask(ui);
    else
      wait(ui);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace comera::studio
