// Size over the steps, stacked by module.
#pragma once
#include <string>

#include "app/figure/figure.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

inline constexpr const char* kSizesTitle = "Size by module";
void draw_sizes(UiState& ui, ImVec2 size);
Figure sizes_figure(const RunView& view, const std::string& note);  // of the whole run

}  // namespace comera::studio
