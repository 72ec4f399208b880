// What the form shows of runs that are trained one after another (run_queue.h).
#pragma once
#include <string>

namespace comera::studio {

struct UiState;

// Stop and "Training 3 of 12: galore seed 1". `stop`: id of the button and of the action, "duel.stop".
void draw_queue_progress(UiState& ui, const char* stop);

}  // namespace comera::studio
