// Runs whose program was killed while it trained. They are told once, with what can be done about them; what was told
// stays told over later starts.
#pragma once

namespace comera::studio {

struct UiState;

// Looks at the list of runs whenever it changed. Once a frame, where somebody is watching.
void tick_interrupted(UiState& ui);

}  // namespace comera::studio
