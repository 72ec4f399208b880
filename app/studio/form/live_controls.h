// Controls of settings that may change while a run trains. A change is posted to the session and takes effect at a step
// boundary; the sign beside it says whether it waits, is in force, or was refused. Without a run that can be commanded,
// or while the past is shown, they show the value in force and cannot be moved.
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

// Posts while it moves, but not more often than that can be followed, and always the last value. `path`: what is edited.
void live_slider(UiState& ui, const LiveSlider& look, double value, const std::string& path);
// A checkbox; the two texts are what is posted.
void live_switch(UiState& ui, const char* title, const char* help, bool on, const std::string& path, const char* text_on = "true",
                 const char* text_off = "false");
// Pending, applied or refused, at the right end of the line; nothing when the setting was not edited here.
void edit_sign(const UiState& ui, const std::string& path, float right);

}  // namespace comera::studio
