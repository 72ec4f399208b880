#include "app/studio/closing.h"

#include <imgui.h>

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"
#include "app/studio/ui_state.h"
#include "core/store/process.h"

namespace comera::studio {
namespace {

constexpr double kPatience = 10;  // seconds until quitting at once is offered

std::string step_text(int64_t step) { return thousands(static_cast<double>(step)); }

std::string checkpoint_text(const Snapshot& s) {
  if (s.last_checkpoint_step < 0) return "It has no checkpoint yet.";
  return "Its last checkpoint is of step " + step_text(s.last_checkpoint_step) +
         (s.last_checkpoint_at > 0 ? ", " + ago(now_s() - s.last_checkpoint_at) + " ago." : ".");
}

void stay(UiState& ui) {
  ui.close_requested = false;
  ImGui::CloseCurrentPopup();
}

// "Quit without saving the last 430 steps".
std::string drop_text(const Snapshot& s) {
  const int64_t lost = s.step - std::max<int64_t>(0, s.last_checkpoint_step);
  if (lost <= 0) return "Quit without another checkpoint";
  if (s.last_checkpoint_step < 0) return "Quit without saving any step";
  return "Quit without saving the last " + (lost == 1 ? "step" : step_text(lost) + " steps");
}

void ask(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  ImGui::Text("Run %s is at step %s of %s.", s.name.c_str(), step_text(s.step).c_str(), step_text(s.total_steps).c_str());
  text_dim(checkpoint_text(s));
  name_item("says:" + checkpoint_text(s));
  ImGui::Dummy({0, em(0.4f)});
  if (button("Checkpoint and quit", {.icon = Icon::save, .primary = true})) ui.live->stop(true);
  ImGui::SameLine();
  if (button((drop_text(s) + "###quit-drop").c_str())) ui.live->stop(false);
  ImGui::SameLine();
  if (button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
}

// What the wait is for: how much of the checkpoint is written as far as that is known.
void saving_progress(const UiState& ui) {
  const auto say = [](const std::string& text) {
    ImGui::TextUnformatted(text.c_str());
    name_item("says:" + text);
  };
  const ImVec2 bar(em(30), em(1.2f));
  if (!ui.live || ui.live->view().ended()) {
    say("Another run writes its last checkpoint ...");
    return progress_bar(kNotKnown, bar, theme().accent, "");
  }
  const Snapshot& s = *ui.live->view().snapshot;
  const Saving& saving = s.saving;
  const bool writes = saving.step >= 0;
  const std::string of = "the checkpoint of step " + step_text(saving.step);
  if (writes && saving.total > 0) {
    const auto done = static_cast<double>(saving.done), total = static_cast<double>(saving.total);
    const bool all = saving.done >= saving.total;
    say(all ? "Waiting for the disk to have " + of + " ..." : "Writing " + of + " ...");
    return progress_bar(static_cast<float>(done / total), bar, theme().accent, mebibytes(done) + " of " + mebibytes(total));
  }
  say(writes                         ? "Collecting the values of " + of + " ..."
      : s.phase == Phase::preparing  ? "The run is still being prepared ..."
      : s.phase != Phase::stopping   ? "Finishing the step after " + step_text(s.step) + " ..."
      : !ui.live->wants_checkpoint() ? "Ending the run ..."
                                     : "Closing the run in the store ...");
  progress_bar(kNotKnown, bar, theme().accent, "");
}

void wait(UiState& ui) {
  Closing& closing = ui.closing;
  if (closing.since == 0) closing.since = ImGui::GetTime();
  const double waited = ImGui::GetTime() - closing.since;
  saving_progress(ui);
  const bool long_time = waited > kPatience || closing.insisted;
  std::string text = waited >= 2 ? "For " + duration(waited) + " now. " : "";
  if (long_time && ui.live) {
    const int64_t step = ui.live->view().snapshot->last_checkpoint_step;
    text += step >= 0 ? "Quitting now keeps the checkpoint of step " + step_text(step) + ": the run can be resumed from there."
                      : "Quitting now keeps no checkpoint: resuming the run begins at its first step.";
  }
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(30));
  text_dim(text.empty() ? " " : text);
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.2f)});
  if (button("Keep the window open") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
  if (!long_time) return;
  ImGui::SameLine();
  const std::string label = ui.live ? drop_text(*ui.live->view().snapshot) : "Quit now";
  if (button((label + "###quit-now").c_str(), {.tooltip = "At once, without waiting for the run"})) ui.quit = closing.at_once = true;
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
  if (ImGui::BeginPopupModal(kTitle, nullptr,
                             ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoTitleBar)) {
    card_title("Quit while training?");
    ImGui::Dummy({0, em(0.2f)});
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
