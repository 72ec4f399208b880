// What the runs of a sweep have reached: by point, as a table and as JSON.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "app/cli/planned_sweep.h"
#include "app/cli/sweep_training.h"
#include "core/session/sweep_runs.h"

namespace comera::cli {

struct PointResult {
  size_t point = 0, rung = 0;
  std::vector<const RunConfig*> configs;
  std::vector<const SweepRun*> runs;  // of configs; null = it is not begun
  std::vector<double> scores;         // of runs
  Spread spread;                      // of the runs that are over
  std::string status;
};

// By point, of `stored`, which must outlive them: the furthest first, then by the metric.
std::vector<PointResult> results_of(const SweepPlan& plan, const SweepTraining& training, const SweepRuns& stored);
Json result_of_point_json(const SweepPlan& plan, const PointResult& result);
void print_results(const Context& context, const SweepPlan& plan, const std::vector<PointResult>& results);
// The command that opens the window with the best points; "" where no run is over.
std::string compare_command(const Context& context, const std::vector<PointResult>& results);

}  // namespace comera::cli
