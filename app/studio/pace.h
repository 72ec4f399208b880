// How long a step takes, out of what was trained before: the newest stored run that computed the same step. Nothing is
// guessed from other shapes. Read on a thread of its own.
#pragma once
#include <string>

#include "core/train/config.h"

namespace comera::studio {

struct PaceQuestion {
  RunConfig config;
  std::string store;  // "" = there is none
};

struct Pace {
  double step_ms = 0;             // median of its last steps; 0 = no run of this shape is known
  std::string run, name, device;  // that it is from
};

// Never throws. The same step: model, weights, stash, optimizer, batch, precision, threads and device.
Pace find_pace(const PaceQuestion& question);

// Steps of a whole run over a set of so many rows; 0 = not known.
int64_t planned_steps(const RunConfig& config, int64_t rows);

}  // namespace comera::studio
