// The forecast of the form as charts that can be exported.
#pragma once
#include <vector>

#include "app/studio/parts/export.h"

namespace comera::studio {

// The memory of all methods if that view is open, the numbers, and the tensor trains if there are any; without a forecast the first only.
std::vector<ListedChart> forecast_charts(UiState& ui);

}  // namespace comera::studio
