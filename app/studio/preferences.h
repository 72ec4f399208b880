// What the window remembers between two starts: settings, keys, where the panels and the window are, how everything is
// looked at (kept_views.h), what was open (reopening.h).
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
// Whole or not at all; a failure is not worth a message.
void save_preferences(const UiState& ui, const std::string& file);

}  // namespace comera::studio
