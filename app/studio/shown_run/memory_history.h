// Memory over the steps: training by purpose, above it the rest of the process, then all processes of the device or
// machine. Plain data for the panel and its export.
#pragma once
#include <array>
#include <vector>

#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

struct MemoryHistory {
  // Stairs: a value holds from its step to the next one. Bytes.
  struct Area {
    std::vector<double> x, low, high;
  };
  std::array<Area, kPurposes> purposes;  // each on the one before
  Area process;                          // on those: the rest of the process. Empty: not recorded, or the run has a device of its own
  std::vector<double> used_x, used;      // of the device or the machine, by all processes. Empty: not recorded
  double top = 0;                        // of the purposes, of the process, of all: what an axis has to reach
  double process_top = 0, used_top = 0;
};
// Between two steps and one point beyond each; of the samples as many as `columns` of pixels show. The last point is at the
// newest step of the run.
MemoryHistory memory_history(const RunView& view, double from, double to, int columns);

// At one step. NaN where it was not recorded.
struct MemoryAt {
  double training = 0;
  MemoryByPurpose purposes;
  double rest;         // of the process: what is not training's
  double used, total;  // of the device or the machine
};
MemoryAt memory_at(const RunView& view, double step);

// The run's memory is that of a device of its own: then what the process holds beside it lies elsewhere.
bool has_own_memory(const Snapshot& snapshot);

}  // namespace comera::studio
