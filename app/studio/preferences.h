// What the window remembers between two starts: theme, size of the text, keys, plots, where the panels are.
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

std::string preferences_file();  // in the user's state folder
// A file that is missing, broken or of another version is as none: the shipped layout is used. One that cannot be read is
// copied to FILE.damaged. Never throws.
void load_preferences(UiState& ui, const std::string& file);
// The database of runs that was chosen, out of that file alone; "" = none was, or it cannot be read. Never throws.
std::string chosen_store(const std::string& file);
// Whole or not at all; a failure is not worth a message.
void save_preferences(const UiState& ui, const std::string& file);

}  // namespace comera::studio
