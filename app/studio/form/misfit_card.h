// What stands in the way when a plan does not fit into memory, and the settings that would help, as buttons.
#pragma once
#include <string>

#include "app/studio/form/memory_fit.h"

namespace comera::studio {

struct UiState;

// In the form of a new run: a button changes the form.
void draw_form_misfit(UiState& ui);
// Of the run that is shown, which failed for want of memory: a button opens the form with its settings, changed.
void draw_failed_misfit(UiState& ui);

}  // namespace comera::studio
