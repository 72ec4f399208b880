// Memory by layer: a table and a treemap.
#pragma once
#include "app/studio/parts/export.h"
#include "app/studio/shown_run/layer_memory.h"

namespace comera::studio {

float mebibytes_width();  // width of "0.0000 MiB" in the font of numbers

// Draws into the remaining area. A click selects the layer in all panels.
void draw_memory_by_layer(UiState& ui, const ModelMemory& memory);
// The treemap as a chart. `memory` must be known.
Chart memory_by_layer_chart(const UiState& ui, const ModelMemory& memory, const std::string& note);

}  // namespace comera::studio
