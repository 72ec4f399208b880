// The rank map of a run without tensor trains: the rank of each matrix, of its factors or of the projection of its gradient.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

// Of the shown run, which has ranked matrices; inside a card.
void draw_matrix_ranks(UiState& ui);
ListedChart matrix_ranks_chart(UiState& ui, const std::string& note);

}  // namespace comera::studio
