// Ranks over the steps: a row per bond, coloured by the fraction of the initial rank.
#pragma once
#include <string>
#include <vector>

#include "app/studio/ui_state.h"

namespace comera::studio {

// Layers in this order; scrolls if there are many.
void draw_rank_heatmap(UiState& ui, const std::vector<size_t>& order, ImVec2 size);
// Of the visible steps, where has_rank_history() is true; its CSV has the rank changes.
Chart rank_history_chart(const UiState& ui, const std::vector<LayerRanks>& layers, const std::string& note);
bool has_rank_history(const UiState& ui);

}  // namespace comera::studio
