// Card of the item selected in the diagram: a bond with its entries, cap and history, a core, or a layer.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/export.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

// A bond or a core of a layer, from 1; both 0: the layer itself. An empty name: nothing.
void choose_in_diagram(UiState& ui, const std::string& layer, int64_t bond, int64_t core);
// Into the window it is called in.
void draw_tt_card(UiState& ui, const LayerRanks& layer);
// Asks for the values of the chosen bond or core, and gives them up when another one is chosen. Null: no layer is.
void inspect_chosen(UiState& ui, const LayerRanks* layer);
// Its past and its entries, or the values of the core.
void add_card_charts(UiState& ui, const LayerRanks& layer, std::vector<ListedChart>& out);

}  // namespace comera::studio
