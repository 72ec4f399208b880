// Size and accuracy of each evaluation of a run.
#pragma once
#include <cstdint>
#include <vector>

#include "app/studio/compare/compared_run.h"

namespace comera::studio {

struct ParetoPoint {
  int64_t step = 0;
  double mebibytes = 0;     // of everything that is trained, at that step
  double accuracy = 0;      // 0..1
  bool checkpoint = false;  // the run can be resumed or exported from here
};
// Every evaluation up to the cursor, by step. Empty when the run stores no accuracy or its size is not known.
std::vector<ParetoPoint> pareto_points(const ComparedRun& run);

// The Pareto front by rising size: each point more accurate than all smaller ones.
std::vector<ParetoPoint> pareto_front(std::vector<ParetoPoint> points);

}  // namespace comera::studio
