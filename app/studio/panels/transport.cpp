// The bar that starts, pauses and stops a run, with its progress.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/named_items.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

std::string counts(const Snapshot& s) {
  return thousands(static_cast<double>(s.step)) + " / " + thousands(static_cast<double>(s.total_steps));
}

}  // namespace

void draw_transport(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = *view.snapshot;
  LiveRun* run = ui.commanded();
  const bool paused = s.phase == Phase::paused;
  const bool settled = run && !run->stopping() && (s.phase == Phase::running || paused);
  const char* why = !ui.has_run()             ? "No run yet: start one first"
                    : !run && view.live       ? "The run has ended"
                    : !run && ui.hides_live() ? "Another run trains: go back to it, at the right of this"
                    : !run                    ? "This run is out of the store: resume it first"
                    : run->stopping()         ? "The run is stopping"
                                              : "The run is not there yet";
  const float height = ImGui::GetFrameHeight() + em(0.3f);
  ImGui::SetCursorPosY((ImGui::GetWindowHeight() - height) / 2);
  const ImVec2 square(height * 1.25f, height);
  const auto next = [] { ImGui::SameLine(0, em(0.35f)); };
  if (run || ui.training()) {
    const bool waits = run && (run->waits<PauseCommand>() || run->waits<ResumeCommand>());
    if (button(paused ? "Resume###start" : "Pause###start", {.icon = paused ? Icon::play : Icon::pause,
                                                             .primary = true,
                                                             .enabled = settled && !waits,
                                                             .tooltip = paused ? "Go on" : "Pause after this step",
                                                             .keys = ui.settings.keys.of("run.toggle"),
                                                             .why_not = waits ? "Waits for the end of the step" : why,
                                                             .size = {em(6.8f), height}}))
      start_or_pause(ui);
  } else {
    const bool resumes = ui.resumable(), demo = ui.preset == "demo";
    const std::string what = resumes ? "Go on from its last checkpoint" : "Start the preset " + ui.preset;
    if (button(resumes ? "Resume###start"
               : demo  ? "Run demo###start"
                       : "Start###start",
               {.icon = Icon::play,
                .primary = true,
                .tooltip = what.c_str(),
                .keys = ui.settings.keys.of("run.toggle"),
                .size = {em(6.8f), height}}))
      start_or_pause(ui);
  }
  next();
  if (button("###step", {.icon = Icon::step,
                         .enabled = settled,
                         .tooltip = "One step, then pause",
                         .keys = ui.settings.keys.of("run.step"),
                         .why_not = why,
                         .size = square}))
    run->step(1);
  next();
  if (button("###checkpoint", {.icon = Icon::save,
                               .enabled = settled && !run->waits<CheckpointCommand>(),
                               .tooltip = "Write a checkpoint",
                               .keys = ui.settings.keys.of("run.checkpoint"),
                               .why_not = why,
                               .size = square}))
    run->checkpoint();
  next();
  if (button("###stop", {.icon = Icon::stop,
                         .enabled = settled,
                         .tooltip = "Stop with a checkpoint",
                         .keys = ui.settings.keys.of("run.stop"),
                         .why_not = why,
                         .size = square}))
    stop_run(ui, true);

  next();
  const bool wide = ImGui::GetWindowWidth() > em(80);  // else only its icon
  if (button(wide ? "New run###new-run" : "###new-run", {.icon = Icon::plus,
                                                         .tooltip = "New run: every setting of it, before it starts",
                                                         .keys = ui.settings.keys.of("layout.new"),
                                                         .size = {wide ? 0 : square.x, height}}))
    open_form(ui);

  const auto middle = [](float of) {
    ImGui::SetCursorPosY(std::round((ImGui::GetWindowHeight() - of) / 2));
    ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset = 0;  // of the buttons before it
  };
  ImGui::SameLine(0, em(1));
  const PhaseLook look = look_of(s.phase);
  middle(ImGui::GetTextLineHeight());
  chip(look.text, look.color, look.icon);
  name_item(std::string("says:") + look.text);
  if (!s.ranks.empty()) {
    ImGui::SameLine(0, em(0.4f));
    middle(ImGui::GetTextLineHeight());
    chip(s.late ? "Late stage" : "Early stage", s.late ? theme().series[3] : theme().series[0], Icon::dot);
    tooltip(s.late ? "Ranks are pushed until the size target is reached, as long as the loss holds."
                   : "The loss is trained; the rank penalty acts gently.");
  }
  if (!view.live && ui.has_run()) {
    ImGui::SameLine(0, em(0.4f));
    middle(ImGui::GetTextLineHeight());
    chip("Stored", theme().dim, Icon::clock);
    tooltip("This is a run out of the store, not the one that trains.");
  }
  if (ui.hides_live()) {
    const Snapshot& live = *ui.live->view().snapshot;
    const std::string name = live.name.empty() ? "the run" : live.name, tells = name + ": " + counts(live);
    ImGui::SameLine(0, em(0.4f));
    middle(ImGui::GetFrameHeight());
    if (button("Back to live###show-live", {.icon = Icon::forward, .tooltip = tells.c_str()})) show_live(ui);
  }
  // Speed at the right end, the progress between. What does not fit is left out, the least important first.
  push_numbers(0.93f);
  const bool moving = s.phase == Phase::running;
  std::string speed = s.steps_per_s > 0 ? rate(s.steps_per_s) + " it/s" : "";
  std::string eta = moving && s.eta_s > 0 ? "ETA " + duration(s.eta_s) : s.elapsed_s > 0 ? "elapsed " + duration(s.elapsed_s) : "";
  std::string right = speed + (speed.empty() || eta.empty() ? "" : "   ") + eta;
  const float edge = ImGui::GetWindowWidth() - em(0.9f);
  ImGui::SameLine(0, em(1));
  const float from = ImGui::GetCursorPosX();
  float text = ImGui::CalcTextSize(right.c_str()).x;
  if (edge - from - text < em(11)) {
    right = eta;
    text = ImGui::CalcTextSize(right.c_str()).x;
  }
  const float bar = edge - from - (text > 0 ? text + em(1) : 0);
  const std::string share = s.total_steps > 0 ? counts(s) : "no steps yet";
  const float share_of = s.total_steps > 0 ? static_cast<float>(static_cast<double>(s.step) / static_cast<double>(s.total_steps)) : 0;
  std::string overlay = share;
  if (s.total_epochs > 0) {
    const std::string longer = share + "   epoch " + significant(s.epoch, 4) + " / " + significant(s.total_epochs, 4);
    if (ImGui::CalcTextSize(longer.c_str()).x < bar - em(2)) overlay = longer;
  }
  if (!s.message.empty() && s.phase == Phase::preparing) overlay = s.message;
  middle(em(1.7f));
  const ImU32 color = s.phase == Phase::failed || s.phase == Phase::diverged ? theme().bad
                      : s.phase == Phase::finished                           ? theme().good
                                                                             : theme().accent;
  const ImVec2 at = ImGui::GetCursorScreenPos(), size(std::max(em(4), bar), em(1.7f));
  progress_bar(share_of, size, color, overlay);
  // Where the late stage began and where checkpoints are, as small signs at the lower edge.
  for (const Mark& mark : view.marks) {
    if (s.total_steps <= 0) break;
    if (mark.kind == Mark::cut || (mark.kind == Mark::segment && mark.step == 0)) continue;  // the timeline has them
    const float x = at.x + size.x * static_cast<float>(static_cast<double>(mark.step) / static_cast<double>(s.total_steps));
    const ImU32 sign = color_of(mark.kind);
    const float r = em(0.22f), y = at.y + size.y + r * 1.6f;
    ImGui::GetWindowDrawList()->AddTriangleFilled({x - r, y + r}, {x + r, y + r}, {x, y - r}, sign);
    if (ImGui::IsMouseHoveringRect({x - 2 * r, y - 2 * r}, {x + 2 * r, y + 2 * r}))
      ImGui::SetTooltip("step %s: %s", thousands(static_cast<double>(mark.step)).c_str(), mark.text.c_str());
  }
  if (text > 0) {
    ImGui::SameLine(0, em(1));
    middle(ImGui::GetTextLineHeight());
    text_right(right, edge, theme().dim);
  }
  ImGui::PopFont();
}

}  // namespace comera::studio
