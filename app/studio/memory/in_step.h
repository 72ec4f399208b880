// Temporaries of a step by phase, from the dry run.
#pragma once
#include <imgui.h>

#include "app/studio/parts/export.h"
#include "core/session/snapshot.h"

namespace comera::studio {

bool knows_step(const Snapshot& snapshot);
// Draws into an area of this size, below a line with the peak and its phase.
void draw_memory_in_step(const Snapshot& snapshot, ImVec2 size);
// The same as a chart. Requires knows_step().
Chart memory_in_step_chart(const Snapshot& snapshot, const std::string& note);

}  // namespace comera::studio
