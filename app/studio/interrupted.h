// Runs whose program was killed during training. Each is reported once, with possible actions; the preferences remember which were
// reported.
#pragma once

namespace comera::studio {

struct UiState;

// Checks the list of runs whenever it has changed. Called once a frame, only in an interactive window.
void tick_interrupted(UiState& ui);

}  // namespace comera::studio
