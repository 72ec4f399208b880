// What was open when the window was closed: the run that was shown, and those that were compared. Runs that are gone by
// now are left out without a word.
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
