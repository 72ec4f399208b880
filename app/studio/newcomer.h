// What a newcomer is offered: a recorded run to look at, the dense twin of a run, a hint at the size target.
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

// The database with the recorded run that ships with the program, which is never written; "" = it is not installed.
const std::string& recorded_store();
bool is_recorded(const std::string& store);
inline constexpr const char* kRecordedRun = "r-recorded";  // its id
inline constexpr const char* kWhyRecorded = "A recorded run that ships with the program: it can only be replayed";
// Plays it from its first step, with the panels arranged to replay it.
void replay_recorded(UiState& ui);

// Trains the shown run's model with dense matrices under AdamW, on the same data for as many steps, and compares both when
// that has finished.
void train_dense_twin(UiState& ui);
// Why it cannot; null when it can.
const char* no_dense_twin(const UiState& ui);
void tick_dense_twin(UiState& ui);
// After the demo has finished.
void offer_dense_twin(UiState& ui);

// The size target was never moved here, nor was the hint at it dismissed, and moving it would show now.
bool hints_at_size_target(const UiState& ui);
// Under its slider. It goes away for good once the slider is moved.
void draw_size_target_hint(UiState& ui);

}  // namespace comera::studio
