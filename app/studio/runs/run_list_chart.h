// The list of runs as a chart for export.
#pragma once
#include <vector>

#include "app/studio/parts/export.h"

namespace comera::studio {

// The list with its current order and columns: all rows as CSV with plain numbers, the first rows as a drawing.
std::vector<ListedChart> run_list_charts(UiState& ui);

}  // namespace comera::studio
