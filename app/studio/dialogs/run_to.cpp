// Trains to a step, for a number of steps or to the next event, then pauses.
#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

constexpr int64_t kMostSteps = 1'000'000'000'000'000;  // also what a longer number becomes when it is read is more

void draw_run_to(UiState& ui) {
  LiveRun* run = ui.commanded();
  if (!run) return close_dialog(ui);  // the run ended meanwhile
  Dialogs& state = ui.dialogs;
  const Snapshot& s = *run->view().snapshot;
  if (state.appearing) {
    state.run_to = std::min(s.step + 100, std::max(s.step + 1, s.total_steps));
    ImGui::SetKeyboardFocusHere();
  }
  text_dim("The run is at step " + thousands(static_cast<double>(s.step)) + " of " + thousands(static_cast<double>(s.total_steps)) +
           ". It pauses there.");
  ImGui::SetNextItemWidth(em(9));
  const bool entered =
      ImGui::InputScalar("##step", ImGuiDataType_S64, &state.run_to, nullptr, nullptr, nullptr, ImGuiInputTextFlags_EnterReturnsTrue);
  name_item("run-to:step");
  ImGui::SameLine();
  const bool ahead = state.run_to > s.step && state.run_to <= kMostSteps;
  const bool pressed = button("Train to this step###run-to",
                              {.icon = Icon::play,
                               .primary = true,
                               .enabled = ahead,
                               .why_not = state.run_to > s.step ? "So many steps cannot be trained" : "This step is already done"});
  if ((pressed || entered) && ahead) {
    run_to_step(ui, state.run_to);
    close_dialog(ui);
  }
  for (const int64_t steps : {10, 100, 1000}) {
    const std::string label = "+" + thousands(static_cast<double>(steps)) + " steps###run-on-" + std::to_string(steps);
    if (steps > 10) ImGui::SameLine();
    if (button(label.c_str())) {
      run->step(steps);
      close_dialog(ui);
    }
  }
  ImGui::SameLine();
  if (button("Next event###run-to-event", {.tooltip = "Pauses after the step of the next checkpoint, stage switch, pruning or alert",
                                           .keys = ui.settings.keys.of("run.to_event")})) {
    run->run_to_event();
    close_dialog(ui);
  }
}

}  // namespace comera::studio
