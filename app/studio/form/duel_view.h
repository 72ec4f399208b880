// The duel in the form: its controls, and what is planned of a method.
#pragma once
#include <imgui.h>

#include <string>

namespace comera::studio {

struct DuelPlan;
struct UiState;

// The ticks of all methods, memory, seeds and the button; while a duel is trained its progress and Stop.
void draw_duel_controls(UiState& ui);

float duel_tick_width();
// The tick of a method at the cursor; the cursor goes behind it.
void draw_duel_tick(DuelPlan& plan, const std::string& id);

// A line below a row: the plan of the duel; "" = the method is not chosen.
struct DuelNote {
  std::string text;
  ImU32 color = 0;
};
DuelNote duel_note(const DuelPlan& plan, const std::string& id);

}  // namespace comera::studio
