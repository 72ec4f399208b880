// Memory over the steps as stacked areas, and what is measured of the memory around training.
#pragma once
#include <string>

#include "app/figure/figure.h"
#include "app/studio/shown_run/memory_history.h"

namespace comera::studio {

struct UiState;

// In the room that is left, with a choice of how far up it goes (UiState::memory_scope) where there is some.
void draw_memory_plot(UiState& ui);
// The same as a chart, with every sample.
Figure memory_figure(const UiState& ui, std::string note);
const char* memory_figure_title(const UiState& ui);

// Memory around training at the shown step; for a live run the process is measured now.
MemoryAt memory_around(const UiState& ui);
inline constexpr const char* kRestHelp =
    "Resident memory of the program minus memory of training, measured about once a second: code, libraries, window, data set.";
std::string memory_level_title(const Snapshot& snapshot);  // of what all processes hold
Color rest_of_process_color();

}  // namespace comera::studio
