// Offers for new users: a recorded run, the dense twin of a run, a hint at the size target.
#pragma once
#include <string>

#include "app/studio/ui_state.h"

namespace comera::studio {

// The database with the recorded run that ships with the program, always read-only; "" = not installed.
const std::string& recorded_store();
bool is_recorded(const std::string& store);
inline constexpr const char* kRecordedRun = "r-recorded";  // its run id
inline constexpr const char* kWhyRecorded = "A recorded run that ships with the program: it can only be replayed";
// Plays the recorded run from its first step, with the panels arranged for replay.
void replay_recorded(UiState& ui);

// Trains the dense twin of the shown run: same model with dense matrices under AdamW, same data, same number of steps. Compares both when
// the twin has finished.
void train_dense_twin(UiState& ui);
// Why this is not possible; null = possible.
const char* no_dense_twin(const UiState& ui);
void tick_dense_twin(UiState& ui);
// Called when the demo has finished. The offer stays until it is dismissed or another run begins.
inline constexpr const char* kDemoFinished = "demo-finished";  // id of its toast
void offer_dense_twin(UiState& ui);

// True if the user has neither moved the size target nor dismissed the hint, and moving it would take effect now.
bool hints_at_size_target(const UiState& ui);
// Drawn under the slider of the size target. Disappears permanently once the slider is moved.
void draw_size_target_hint(UiState& ui);

}  // namespace comera::studio
