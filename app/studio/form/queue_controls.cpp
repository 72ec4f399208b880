#include "app/studio/form/queue_controls.h"

#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_queue_progress(UiState& ui, const char* stop) {
  const bool stopping = ui.queue->stopping;
  const std::string tip =
      "Stops the run that trains with a checkpoint. Start the same " + ui.queue->order.noun + " again to train the rest";
  if (button((std::string("Stop###") + stop).c_str(), {.icon = Icon::stop,
                                                       .enabled = !stopping,
                                                       .tooltip = tip.c_str(),
                                                       .keys = ui.settings.keys.of(stop),
                                                       .why_not = "Waits for the checkpoint"}))
    stop_queue(ui);
  const std::string text = (stopping ? "Stopping at " : "Training ") + queue_progress(*ui.queue);
  beside_or_below(ImGui::CalcTextSize(text.c_str()).x);
  ImGui::AlignTextToFramePadding();
  text_wrapped(text, theme().text);
}

}  // namespace comera::studio
