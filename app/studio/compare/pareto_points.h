// Size and accuracy of each evaluation of a run.
#pragma once
#include <cstdint>
#include <vector>

#include "app/studio/compare/compared_run.h"

namespace comera::studio {

struct ParetoPoint {
  int64_t step = 0;
  double mebibytes = 0;     // of all parameters at that step
  double accuracy = 0;      // 0..1
  bool checkpoint = false;  // there is a checkpoint at this step
};
// All evaluations up to the cursor, by step. Empty if the run stores no accuracy or its size is not known.
std::vector<ParetoPoint> pareto_points(const ComparedRun& run);

// The Pareto front by ascending size: each point is more accurate than all smaller ones.
std::vector<ParetoPoint> pareto_front(std::vector<ParetoPoint> points);

}  // namespace comera::studio
