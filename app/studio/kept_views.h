// View settings that persist between starts: view of a panel, axis,
// filter. A new one is a line in kept_views.cpp, which writes and reads it and resets it.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/base/json.h"

namespace comera::studio {

struct UiState;

// Adds them to `json`, or takes what is there; what is not, or makes no sense, stays as it is.
void save_views(const UiState& ui, Json& json);
void load_views(UiState& ui, const Json& json);
// As shipped. False: they are already.
bool reset_views(UiState& ui);

}  // namespace comera::studio
