// A state under another rank of its projection: how the moments of a run follow a live change (METHODS.md 2.1).
#pragma once
#include <cstdint>

#include "core/optim/state.h"

namespace comera {

// The numbers of a state for `now`, which differs from before in the lengths of its rank axes alone; else it begins anew, at 0. `site`:
// of the draws for directions that a larger rank adds. Double precision on the host: r n (r - r_before) steps for a projection (r, n).
StateNumbers followed(const StateNumbers& before, const StateSpec& now, uint32_t site);

}  // namespace comera
