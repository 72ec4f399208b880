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

// What is known of the memory around training at the shown step. The process of a run that trains here is looked at now.
MemoryAt memory_around(const UiState& ui);
inline constexpr const char* kRestHelp =
    "Measured about once a second: resident memory of the program that trained, less what training held. Code, libraries, the window, "
    "the data set.";
std::string memory_level_title(const Snapshot& snapshot);  // of what all processes hold
Color rest_of_process_color();

}  // namespace comera::studio
