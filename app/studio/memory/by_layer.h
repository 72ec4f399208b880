// Memory by layer: a table and a treemap.
#pragma once
#include "app/studio/parts/export.h"
#include "app/studio/shown_run/layer_memory.h"

namespace comera::studio {

// In the room that is left. A click on a layer chooses it everywhere.
void draw_memory_by_layer(UiState& ui, const ModelMemory& memory);
// The areas as a chart; the memory must be known.
Chart memory_by_layer_chart(const UiState& ui, const ModelMemory& memory, const std::string& note);

}  // namespace comera::studio
