// Histogram and quantiles of the recorded step times.
#pragma once
#include <cstddef>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct StepTimeSummary {
  size_t count = 0;            // number of steps with a time
  double median = 0, p95 = 0;  // ms
  double low = 0, high = 0;    // range of the bins: fastest step to 99th percentile
  double slowest = 0;
  size_t beyond = 0;         // steps slower than `high`, outside the bins
  std::vector<size_t> bins;  // number of steps in equal intervals from low to high
};

// Uses the finite values of `step_ms` up to x = `until`. Above 400,000 steps only every second, third, ... step is used and counts for
// those between; `slowest` considers all steps.
StepTimeSummary step_times(const Curve& step_ms, double until);

// The quantile `quantile` (0 to 1) of the values; 0 without values.
double quantile_of(std::vector<double> values, double quantile);

}  // namespace comera::studio
