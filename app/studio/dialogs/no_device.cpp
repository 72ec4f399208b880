// A run needs a GPU that is not available: offers the same run on the CPU.
#include "app/studio/dialogs.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_no_device(UiState& ui) {
  const NoDevice& missing = ui.dialogs.no_device;
  ImGui::PushTextWrapPos(0);
  const std::string text = "This run needs " + missing.device + ", which is not available here.";
  ImGui::TextUnformatted(text.c_str());
  name_item("says:" + text);
  text_dim(missing.why);
  text_dim("The CPU trains the same model with the same settings, more slowly. Values may differ in their last digits.");
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.3f)});
  if (button("Train on CPU", {.icon = Icon::play, .primary = true})) {
    const auto act = missing.on_cpu;
    close_dialog(ui);
    act(ui);
    return;
  }
  ImGui::SameLine();
  if (button("Cancel")) close_dialog(ui);
}

}  // namespace comera::studio
