// Toolbar with the grouping of the compared runs.
#pragma once
#include "app/studio/compare/compare.h"

namespace comera::studio {

// Goes on in the line where the cursor is, and takes more lines where it must.
void group_toolbar(Compare& compare);

}  // namespace comera::studio
