// View settings that persist between sessions: view of a panel, axis, filter. A new setting is one line in kept_views.cpp, which writes,
// reads and resets it.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/base/json.h"

namespace comera::studio {

struct UiState;

// Write the settings to `json`, or read them; missing or invalid values leave the setting unchanged.
void save_views(const UiState& ui, Json& json);
void load_views(UiState& ui, const Json& json);
// Resets the settings to their defaults. False: nothing had to change.
bool reset_views(UiState& ui);

}  // namespace comera::studio
