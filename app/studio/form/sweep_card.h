// The sweep in the form: its card, and the box at each setting that may vary.
#pragma once
#include <string>

namespace comera::studio {

struct NewRun;
struct UiState;

// In the card of the start: shows and hides the sweep.
void draw_sweep_switch(UiState& ui);
void draw_sweep_card(UiState& ui);

float sweep_tick_width();  // taken in front of every label while the sweep is shown
// The box of a setting at the cursor, in a line of the height of a frame; none where it cannot vary. The cursor goes behind it.
void draw_sweep_tick(NewRun& form, const std::string& path);

}  // namespace comera::studio
