// Runs whose program was killed during training. Each is reported once, with actions; preferences remember reported ones.
#pragma once

namespace comera::studio {

struct UiState;

// Checks the list of runs whenever it changed. Once per frame, only in an interactive window.
void tick_interrupted(UiState& ui);

}  // namespace comera::studio
