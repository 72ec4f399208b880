// Memory over steps: training by purpose, above it the rest of the process, then all processes on the device or machine. Plain data for the
// panel and its export.
#pragma once
#include <array>
#include <vector>

#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

struct MemoryHistory {
  // Step functions in bytes: a value holds until the next step.
  struct Area {
    std::vector<double> x, low, high;
  };
  std::array<Area, kPurposes> purposes;  // stacked, each on the previous one
  Area process;                          // rest of the process, on top of these. Empty if not recorded, or if the device has its own memory
  std::vector<double> used_x, used;      // all processes, on the device or machine. Empty if not recorded
  double top = 0;                        // largest value of the purposes, of the process and of all processes, for the range of the axis
  double process_top = 0, used_top = 0;
};
// Purposes: all steps. Samples of process and device: from step `from` to `to` and one point beyond each side, reduced to `columns` pixels.
// Everything extends to the newest step of the run.
MemoryHistory memory_history(const RunView& view, double from, double to, int columns);

// Memory at one step; NaN = not recorded.
struct MemoryAt {
  double training = 0;
  MemoryByPurpose purposes;
  double rest;         // memory of the process outside training
  double used, total;  // all processes, on the device or machine
};
MemoryAt memory_at(const RunView& view, double step);

// The device has its own memory; the rest of the process is then in other memory.
bool has_own_memory(const Snapshot& snapshot);

}  // namespace comera::studio
