#include "app/studio/closing.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>

#include "app/format.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/ui_state.h"
#include "core/store/process.h"

namespace comera::studio {
namespace {

constexpr double kOfferAfter = 10;  // seconds after which quitting at once is offered
constexpr float kWidth = 30;        // of texts, in em

std::string step_text(int64_t step) { return thousands(static_cast<double>(step)); }

std::string checkpoint_text(const Snapshot& s) {
  if (s.last_checkpoint_step < 0) return "It has no checkpoint yet.";
  return "Its last checkpoint is at step " + step_text(s.last_checkpoint_step) +
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
  name_item("says:" + drop_text(s));
  ImGui::SameLine();
  if (button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
}

void say(const std::string& text) {
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(kWidth));
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  name_item("says:" + text);
}

void list_work(const std::vector<std::string>& work) {
  constexpr size_t kMost = 6;
  for (size_t i = 0; i < std::min(work.size(), kMost); ++i) say(work[i]);
  if (work.size() > kMost) text_dim("and " + std::to_string(work.size() - kMost) + " more");
}

// Shows how much of the checkpoint is written, as far as known.
void saving_progress(const UiState& ui) {
  const ImVec2 bar(em(kWidth), em(1.2f));
  if (!ui.live || ui.live->view().ended()) {
    say("Another run is writing its last checkpoint ...");
    return progress_bar(kNotKnown, bar, theme().accent, "");
  }
  const Snapshot& s = *ui.live->view().snapshot;
  const Saving& saving = s.saving;
  const bool writes = saving.step >= 0;
  const std::string of = "the checkpoint of step " + step_text(saving.step);
  if (writes && saving.total > 0) {
    const auto done = static_cast<double>(saving.done), total = static_cast<double>(saving.total);
    const bool all = saving.done >= saving.total;
    say(all ? "Flushing to disk: " + of + " ..." : "Writing " + of + " ...");
    return progress_bar(static_cast<float>(done / total), bar, theme().accent, mebibytes(done) + " of " + mebibytes(total));
  }
  say(writes                         ? "Collecting values for " + of + " ..."
      : s.phase == Phase::preparing  ? "The run is still being prepared ..."
      : s.phase != Phase::stopping   ? "Finishing the step after " + step_text(s.step) + " ..."
      : !ui.live->wants_checkpoint() ? "Ending the run ..."
                                     : "Closing the run in the database ...");
  progress_bar(kNotKnown, bar, theme().accent, "");
}

double seconds_waited(Closing& closing) {
  if (closing.since == 0) closing.since = ImGui::GetTime();
  return ImGui::GetTime() - closing.since;
}

void wait(UiState& ui, const std::vector<std::string>& work) {
  Closing& closing = ui.closing;
  const double waited = seconds_waited(closing);
  saving_progress(ui);
  list_work(work);
  const bool long_time = waited > kOfferAfter || closing.insisted;
  std::string text = waited >= 2 ? "Waiting for " + duration(waited) + ". " : "";
  if (long_time && ui.live) {
    const int64_t step = ui.live->view().snapshot->last_checkpoint_step;
    text += step >= 0 ? "Quitting now keeps the checkpoint of step " + step_text(step) + ": the run can be resumed from there."
                      : "Quitting now leaves no checkpoint: the run can only resume from its first step.";
  }
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(kWidth));
  text_dim(text.empty() ? " " : text);
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.2f)});
  if (button("Keep the window open") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
  if (!long_time) return;
  ImGui::SameLine();
  const std::string label = ui.live ? drop_text(*ui.live->view().snapshot) : "Quit now";
  if (button((label + "###quit-now").c_str(), {.tooltip = "Quits at once, without waiting for the run"})) ui.quit = closing.at_once = true;
}

void tell_unsaved(UiState& ui, const std::string& unsaved) {
  if (!unsaved.empty()) ImGui::TextUnformatted("The run has ended, but not all of it is saved.");
  ImGui::PushTextWrapPos(em(kWidth));
  if (!unsaved.empty()) {
    text_dim(unsaved);
    text_dim(checkpoint_text(*ui.live->view().snapshot));
  }
  for (const std::string& problem : ui.closing.problems) {
    text_dim(problem);
    name_item("says:" + problem);
  }
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.3f)});
  if (button("Keep the window open", {.primary = true}) || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
  ImGui::SameLine();
  if (button("Quit anyway")) ui.closing.accepts_loss = true;
}

void wait_for_work(UiState& ui, const std::vector<std::string>& work) {
  Closing& closing = ui.closing;
  const double waited = seconds_waited(closing);
  if (closing.gave_up) give_up_work(ui);  // every frame: also drops work that began since
  ImGui::TextUnformatted(closing.gave_up ? "The window closes when this has stopped:" : "The window closes when this is done:");
  list_work(work);
  progress_bar(kNotKnown, {em(kWidth), em(1.2f)}, theme().accent, "");
  text_dim(waited >= 2 ? "For " + duration(waited) + " now." : " ");
  ImGui::Dummy({0, em(0.2f)});
  if (button("Keep the window open") || ImGui::IsKeyPressed(ImGuiKey_Escape)) stay(ui);
  ImGui::SameLine();
  if (!closing.gave_up) {
    if (button("Give up and quit###quit-give-up", {.tooltip = "Unfinished files are removed; finished files stay"})) {
      closing.gave_up = true;
      closing.since = 0;
    }
  } else if (waited > kOfferAfter || closing.insisted) {
    if (button("Quit now###quit-now", {.tooltip = "Without waiting; unfinished files are removed"})) ui.quit = closing.at_once = true;
  } else {
    text_dim("Stopping ...");
  }
}

}  // namespace

std::vector<std::string> unfinished_work(const UiState& ui) {
  std::vector<std::string> out;
  if (const FileWriter* writer = ui.exports.writer.get(); writer && writer->busy()) {
    const FileWriter::Unfinished left = writer->unfinished();
    out.push_back("Writing " + (left.files == 1 ? "1 file" : std::to_string(left.files) + " files") +
                  (left.folder.empty() ? "" : " to " + left.folder));
  }
  if (ui.store)
    for (const RunChange& change : ui.store->unfinished()) {
      out.push_back(work_text(change));
      out.back()[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out.back()[0])));
    }
  if (ui.dialogs.open_number != 0) out.push_back("Reading " + ui.dialogs.opened);
  if (ui.dialogs.salvager && ui.dialogs.salvager->busy()) out.emplace_back("Copying the readable part of the database");
  if (ui.reproducing) {
    const ReproduceQuestion& question = ui.reproducing->question();
    out.push_back("Computing steps " + step_text(question.first) + " to " + step_text(question.last) + " of " + question.name +
                  " again, now at step " + step_text(ui.reproducing->at()));
  }
  if (ui.evaluate.work) out.push_back("Evaluating " + ui.evaluate.work->question().name);
  return out;
}

void give_up_work(UiState& ui) {
  if (ui.exports.writer) ui.exports.writer->give_up();
  if (ui.store) ui.store->give_up_changes();
  ui.dialogs.to_open.clear();
  if (ui.reproducing) ui.reproducing->give_up();
  if (ui.evaluate.work) ui.evaluate.work->give_up();
}

void draw_close_dialog(UiState& ui) {
  if (!ui.close_requested) {
    ui.closing = {};
    return;
  }
  const Closing& closing = ui.closing;
  const std::string unsaved = ui.live && ui.live->wants_checkpoint() ? ui.live->view().snapshot->store_problem : "";
  const bool loses = !closing.accepts_loss && (!unsaved.empty() || !closing.problems.empty());
  const std::vector<std::string> work = unfinished_work(ui);
  if (!ui.training() && work.empty() && !loses) {
    ui.quit = true;
    return;
  }
  constexpr const char* kTitle = "Quit while training?###quit";
  if (!ImGui::IsPopupOpen(kTitle)) ImGui::OpenPopup(kTitle);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1.2f), em(1)));
  if (ImGui::BeginPopupModal(kTitle, nullptr,
                             ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoTitleBar)) {
    card_title(ui.training() ? "Quit while training?" : loses ? "Not everything is saved" : "Quitting");
    ImGui::Dummy({0, em(0.2f)});
    if (ui.live && !ui.live->view().ended() && !ui.live->stopping())
      ask(ui);
    else if (ui.training())
      wait(ui, work);
    else if (loses)
      tell_unsaved(ui, unsaved);
    else
      wait_for_work(ui, work);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace comera::studio
