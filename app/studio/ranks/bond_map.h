// The ranks of now: layers by bonds, each cell with its live rank, coloured by the remaining fraction.
#pragma once
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Draws into the remaining area, layers in this order. A click selects a bond, dragging it up or down sets its cap. True: the area below
// the map is left, for its history.
bool draw_bond_map(UiState& ui, const std::vector<size_t>& order);
Chart bond_map_chart(const std::vector<LayerRanks>& layers, const std::string& note);

}  // namespace comera::studio
