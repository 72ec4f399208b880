// Card for a plan that does not fit into memory, with remedies as buttons.
#pragma once
#include <string>

#include "app/studio/form/memory_fit.h"

namespace comera::studio {

struct UiState;

// For the form of a new run: a button changes the form.
void draw_form_misfit(UiState& ui);
// For a shown run that ran out of memory: a button opens the form with its settings and the change.
void draw_failed_misfit(UiState& ui);

}  // namespace comera::studio
