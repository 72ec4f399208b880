// The forecast of the form as charts that can be exported.
#pragma once
#include <vector>

#include "app/studio/parts/export.h"

namespace comera::studio {

// The numbers, and the tensor trains if there are any; empty without a forecast.
std::vector<ListedChart> forecast_charts(UiState& ui);

}  // namespace comera::studio
