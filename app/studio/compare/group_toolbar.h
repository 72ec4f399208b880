// Toolbar for grouping the compared runs.
#pragma once
#include "app/studio/compare/compare.h"

namespace comera::studio {

// Continues the current line, and wraps if there is not enough room.
void group_toolbar(Compare& compare);

}  // namespace comera::studio
