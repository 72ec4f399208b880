// Phase times of a run: means of all steps up to the cursor.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "app/studio/compare/compared_run.h"

namespace comera::studio {

struct PhaseTimes {
  // Per step, ms; NaN = not recorded. `rest`: ranks, pruning, reports.
  double data, forward, backward, update, rest, whole;
  double evaluation;  // one evaluation, ms
  bool known() const { return forward == forward; }
};
// From samples taken about once a second, else from the run's newest profile.
PhaseTimes phase_times(const ComparedRun& run);
using AllPhaseTimes = std::map<const ComparedRun*, PhaseTimes>;
AllPhaseTimes phase_times(const std::vector<std::shared_ptr<ComparedRun>>& runs);

// A phase and its segment of the bar.
struct StepPart {
  const char* id;
  const char* title;
  const char* help;
  size_t color;  // index into the theme's series colours
  double PhaseTimes::*ms;
  bool in_step;  // part of the whole step
};
const std::vector<StepPart>& step_parts();
// Each phase, the whole step and the evaluation, with differences in ms and percent.
std::vector<Quantity> phase_quantities(std::shared_ptr<const AllPhaseTimes> times);

}  // namespace comera::studio
