// Card of the item selected in the diagram: a bond with its entries, cap and history, a core, or a layer.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/export.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

// Selects a bond or a core of a layer, from 1; both 0: the layer. An empty name clears the selection.
void choose_in_diagram(UiState& ui, const std::string& layer, int64_t bond, int64_t core);
// Draws into the current window.
void draw_tt_card(UiState& ui, const LayerRanks& layer);
// Requests the values of the selected bond or core; cancels the request when the selection changes. `layer`: null = none selected.
void inspect_chosen(UiState& ui, const LayerRanks* layer);
// Charts of the card: history and entries of a bond, or values of a core.
void add_card_charts(UiState& ui, const LayerRanks& layer, std::vector<ListedChart>& out);

}  // namespace comera::studio
