// The list of runs as a chart that can be exported.
#pragma once
#include <vector>

#include "app/studio/parts/export.h"

namespace comera::studio {

// What the list shows, in its order and with its columns: all rows as CSV, with numbers as they are in a filter; the first
// of them as a drawing.
std::vector<ListedChart> run_list_charts(UiState& ui);

}  // namespace comera::studio
