// Histogram and quantiles of the recorded step times.
#pragma once
#include <cstddef>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct StepTimeSummary {
  size_t count = 0;            // steps with a time
  double median = 0, p95 = 0;  // ms
  double low = 0, high = 0;    // of the bins: from the fastest step to the 99th of 100
  double slowest = 0;
  size_t beyond = 0;         // steps slower than `high`, in no bin
  std::vector<size_t> bins;  // steps in each of equal parts from low to high
};

// Of the points of `step_ms` up to x = `until`; values that are not finite are left out. Of more than 400,000 steps
// every second, third, ... is looked at, and stands for those between; the slowest is that of all.
StepTimeSummary step_times(const Curve& step_ms, double until);

// The value that a share `quantile` of the values is at most; 0 of none.
double quantile_of(std::vector<double> values, double quantile);

}  // namespace comera::studio
