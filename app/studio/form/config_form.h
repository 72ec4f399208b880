// All settings of the config of a new run as rows of a form. The rows are generated from the config's fields, so a new setting appears with
// its range, its choices and its help.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_config_form(UiState& ui);

}  // namespace comera::studio
