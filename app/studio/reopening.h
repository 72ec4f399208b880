// Reopens the shown and compared runs of the last session. Deleted runs are skipped silently.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace comera::studio {

struct UiState;

// By id, as long as the list of runs has not told whether they are there.
struct Reopening {
  std::string shown;  // "" = none is waited for
  std::set<std::string> compared;
};

// Of the window as it is: the run that is shown, if it can be read again; those that are compared.
std::string shown_run(const UiState& ui);
std::vector<std::string> compared_runs(const UiState& ui);

// Another run was asked for instead.
void forget_shown(UiState& ui);
// Once a frame.
void tick_reopening(UiState& ui);

}  // namespace comera::studio
