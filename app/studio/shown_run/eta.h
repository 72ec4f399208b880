// Remaining time of a run, with its uncertainty.
#pragma once
#include <cstdint>

#include "app/studio/shown_run/play_clock.h"

namespace comera::studio {

struct Eta {
  double seconds = 0;  // 0 = not known
  double spread = 0;   // standard deviation of the estimate; 0 = not known
};

// Remaining time at the speed of the newest steps, including evaluations and checkpoints between them. The spread is the prediction error
// of a sum, computed from the variance between blocks of steps. It does not consider that steps become faster as ranks fall.
Eta estimate_eta(const PlayClock& clock, int64_t steps_left);

}  // namespace comera::studio
