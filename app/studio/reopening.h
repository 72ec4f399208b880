// Reopens the shown and the compared runs of the last session. Deleted runs are skipped silently.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace comera::studio {

struct UiState;

// Ids of runs to reopen; kept until the list of runs has been read and shows whether they exist.
struct Reopening {
  std::string shown;  // "" = none
  std::set<std::string> compared;
};

// The runs to reopen in the next session: the shown run if it is stored, and the compared runs.
std::string shown_run(const UiState& ui);
std::vector<std::string> compared_runs(const UiState& ui);

// Cancels reopening the shown run, because another run was requested.
void forget_shown(UiState& ui);
// Called once a frame.
void tick_reopening(UiState& ui);

}  // namespace comera::studio
