// Memory of all methods: a bar a method, smallest peak first; a click chooses the method in the form.
#pragma once
#include "app/studio/parts/export.h"

namespace comera::studio {

void draw_method_memory(UiState& ui);
// The same for export, with a table of bytes; empty while nothing is planned.
std::vector<ListedChart> method_memory_charts(UiState& ui);

}  // namespace comera::studio
