// Temporaries of a step by phase, from the dry run.
#pragma once
#include <imgui.h>

#include "app/studio/parts/export.h"
#include "core/session/snapshot.h"

namespace comera::studio {

bool knows_step(const Snapshot& snapshot);
// In a rectangle of this size, with a line over it that says how much and where most.
void draw_memory_in_step(const Snapshot& snapshot, ImVec2 size);
// The same as a chart; knows_step() it must.
Chart memory_in_step_chart(const Snapshot& snapshot, const std::string& note);

}  // namespace comera::studio
