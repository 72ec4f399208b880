// A sweep as it was asked for: its points, which of them are trained, and up to which steps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "core/base/json.h"
#include "core/session/sweep_plan.h"

namespace comera::cli {

struct SweepOptions {
  std::string file, slurm, metric;
  int64_t jobs = 0, task = -1;  // jobs 0: not given
  double grace = 30;
  bool plan = false;
};

struct SweepPlan {
  Sweep sweep;
  std::vector<SweepPoint> points;
  const MetricInfo* metric = nullptr;
  std::vector<const RunConfig*> tasks;
  std::vector<size_t> chosen;  // points that are trained: all that are not left out, or the one of --task
  int64_t task = -1;

  // The step up to which a rung trains; 0 = the end of each config.
  int64_t step_of(size_t rung) const { return sweep.halving ? sweep.halving->rungs[rung] : 0; }
  size_t rungs() const { return sweep.halving ? sweep.halving->rungs.size() : 1; }
  std::vector<const RunConfig*> runs_of(size_t point) const {
    std::vector<const RunConfig*> runs;
    for (const RunConfig& run : points[point].runs)
      if (task < 0 || &run == tasks[static_cast<size_t>(task)]) runs.push_back(&run);
    return runs;
  }
};

// Reads the file (`file`: where its bytes are, options.file as it was named) and plans its points. Throws Error(config) for a file that is
// not right, Error(usage) for options that do not fit it.
SweepPlan plan_of(const SweepOptions& options, const std::string& file);
// Prints points, steps and planned peaks. Returns the exit code.
int print_plan(const Context& context, const SweepOptions& options, const SweepPlan& plan);

Json settings_json(const SweepSettings& settings);
std::vector<std::string> short_names(const Sweep& sweep);          // of the settings that vary
std::vector<std::string> cells_of(const SweepSettings& settings);  // their values, for a table
// Points that cannot be trained, with the reason.
Json left_out_json(const SweepPlan& plan);
void note_left_out(const Context& context, const SweepPlan& plan);

}  // namespace comera::cli
