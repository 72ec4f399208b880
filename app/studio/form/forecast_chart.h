// The forecast of the form as charts that can be exported.
#pragma once
#include <vector>

#include "app/studio/parts/export.h"

namespace comera::studio {

// Its numbers, and its tensor trains where there are some; none while there is no forecast.
std::vector<ListedChart> forecast_charts(UiState& ui);

}  // namespace comera::studio
