// Buttons, sliders and switches.
#pragma once
#include <imgui.h>

#include "app/studio/parts/icons.h"

namespace comera::studio {

struct ButtonLook {
  Icon icon = Icon::none;
  bool primary = false;  // in the accent colour
  bool enabled = true;
  const char* tooltip = nullptr;
  ImGuiKeyChord keys = 0;         // shortcut, appended to the tooltip
  const char* why_not = nullptr;  // tooltip while disabled
  ImVec2 size = {0, 0};
};
// Without a `label` only the icon is shown. Text after ### is the id.
bool button(const char* label, const ButtonLook& look = {});
float button_width(const char* label, const ButtonLook& look);

// The value that a dragged slider sets: rounded to three significant digits, since more would only fill the log.
double slider_value(double value);
// A thin slider without text. The range of a logarithmic slider may begin at 0.
bool slim_slider(const char* id, double& value, double low, double high, bool logarithmic, float width);
float checkbox_width(const char* label);
// An on/off switch.
bool toggle(const char* id, bool& on);
bool segmented(const char* id, const char* const* labels, int count, int& chosen);

}  // namespace comera::studio
