// Controls of live settings. A change is posted to the session and takes effect at a step boundary; a sign next to it shows
// pending, applied or refused. Without a live run, or during replay, they show the current value and are disabled.
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

struct LiveSlider {
  const char* title;
  const char* help;
  double low, high;
  bool logarithmic = false;
  const char* format = "%.3g";  // of the value, printed by it
  bool whole = false;           // whole numbers only
};

// Posts while it moves, at a limited rate, and always the last value. `path`: the setting.
void live_slider(UiState& ui, const LiveSlider& look, double value, const std::string& path);
// A checkbox; the two texts are the posted values.
void live_switch(UiState& ui, const char* title, const char* help, bool on, const std::string& path, const char* text_on = "true",
                 const char* text_off = "false");
// Pending, applied or refused, at the right end of the line; nothing when the setting was not edited here.
void edit_sign(const UiState& ui, const std::string& path, float right);

}  // namespace comera::studio
