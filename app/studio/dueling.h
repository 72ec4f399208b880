// A duel that is trained in this window (run_queue.h). It is the duel of `comera duel` (core/session/duel.h): either continues what the
// other began.
#pragma once
#include <string>

namespace comera::studio {

struct UiState;

inline constexpr const char* kDuelNoun = "duel";

// Why the duel of the form cannot start; "" = it can.
std::string no_duel(const UiState& ui);
// Starts or continues the duel of the form (form/duel_plan.h).
void start_duel(UiState& ui);

}  // namespace comera::studio
