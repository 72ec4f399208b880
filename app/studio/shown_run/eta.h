// How long the rest of a run takes, and how sure that is.
#pragma once
#include <cstdint>

#include "app/studio/shown_run/play_clock.h"

namespace comera::studio {

struct Eta {
  double seconds = 0;  // 0 = not known
  double spread = 0;   // one standard deviation of that; 0 = not known
};

// For so many steps more, at the pace of the newest ones; scoring and checkpoints between them are in it. The spread is
// the prediction error of a sum: the pace of the blocks that were looked at is taken to go on varying as it did. That
// falling ranks make steps faster is not foreseen.
Eta estimate_eta(const PlayClock& clock, int64_t steps_left);

}  // namespace comera::studio
