// All settings of the config of a new run as rows of a form. The rows come from the config's fields: a new setting
// appears by itself, with its range, its choices and its help.
#pragma once
#include "app/studio/ui_state.h"

namespace comera::studio {

void draw_config_form(UiState& ui);

}  // namespace comera::studio
