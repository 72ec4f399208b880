// Size and accuracy of each evaluation of a run.
#pragma once
#include <vector>

#include "app/figure/pareto.h"
#include "app/studio/compare/compared_run.h"

namespace comera::studio {

// All evaluations up to the cursor, by step. Empty if the run stores no accuracy or its size is not known.
std::vector<ParetoPoint> pareto_points(const ComparedRun& run);

}  // namespace comera::studio
