// Controls of live settings. A change is posted to the session and takes effect at a step boundary; a sign next to the control shows
// whether it is pending, applied or refused. Without a live run or during a replay, controls show the current value and are disabled.
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

struct LiveSlider {
  std::string title, help;
  double low, high;
  bool logarithmic = false;
  std::string format = "%.3g";  // of the displayed value
  bool whole = false;           // whole numbers only
  bool replans = false;         // posted when it is let go; until then the memory is shown that the value would take
};

// Slider or switch of a setting as its description says; `values`: those in effect.
void live_setting(UiState& ui, const FieldValues& values, const std::string& path);
// Posts edits while the slider moves, at a limited rate, and always the last value. `path`: the setting.
void live_slider(UiState& ui, const LiveSlider& look, double value, const std::string& path);
// A checkbox; `text_on` and `text_off` are the posted values.
void live_switch(UiState& ui, const std::string& title, const std::string& help, bool on, const std::string& path,
                 const char* text_on = "true", const char* text_off = "false");
// Sign at the right end of the line: pending, applied or refused; nothing if this window did not edit the setting.
void edit_sign(const UiState& ui, const std::string& path, float right);

}  // namespace comera::studio
