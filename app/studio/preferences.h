// Preferences that persist between sessions: settings, keys, positions of panels and window, view settings (kept_views.h), open runs
// (reopening.h).
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

std::string preferences_file();  // in the user's state folder
// A missing file, invalid values and the layout of another version give the defaults. A file that cannot be read is copied to FILE.damaged.
// Never throws.
void load_preferences(UiState& ui, const std::string& file);
// Resets theme, text size, frame rates, alerts, checkpoints and dialogs to their defaults; keys, layouts and the database stay.
void reset_settings(UiState& ui);
// The database that the user chose, read from the file alone; "" = none, or unreadable. Never throws.
std::string chosen_store(const std::string& file);
// Atomic; failures are ignored.
void save_preferences(const UiState& ui, const std::string& file);

}  // namespace comera::studio
