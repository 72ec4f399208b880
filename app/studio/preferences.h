// Preferences that persist between starts: settings, keys, positions of panels and window, view settings (kept_views.h),
// open runs (reopening.h).
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

std::string preferences_file();  // in the user's state folder
// A file that is missing is as none, and what makes no sense in one that somebody edited is as shipped; so is the layout of
// another version. A file that cannot be read is copied to FILE.damaged. Never throws.
void load_preferences(UiState& ui, const std::string& file);
// Theme, size of the text, frames, alerts, checkpoints and dialogs as shipped; keys, layouts and the database stay.
void reset_settings(UiState& ui);
// The database of runs that was chosen, out of that file alone; "" = none was, or it cannot be read. Never throws.
std::string chosen_store(const std::string& file);
// Atomic; failures are ignored.
void save_preferences(const UiState& ui, const std::string& file);

}  // namespace comera::studio
