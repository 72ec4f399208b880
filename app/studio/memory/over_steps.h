// Memory over steps as stacked areas, and the measured memory outside training.
#pragma once
#include <string>

#include "app/figure/figure.h"
#include "app/studio/shown_run/memory_history.h"

namespace comera::studio {

struct UiState;

// Draws into the remaining area, with a choice of scope (UiState::memory_scope) if there is room.
void draw_memory_plot(UiState& ui);
// The same as a figure, with every sample.
Figure memory_figure(const UiState& ui, std::string note);
const char* memory_figure_title(const UiState& ui);

// Memory of training, process and machine at the shown step; for a live run the process is measured now.
MemoryAt memory_around(const UiState& ui);
inline constexpr const char* kRestHelp =
    "Resident memory of the program minus memory of training, measured about once a second: code, libraries, window, data set.";
std::string memory_level_title(const Snapshot& snapshot);  // title of the memory of all processes
Color rest_of_process_color();

}  // namespace comera::studio
