// Shows the newest run of the database when it starts, if enabled (Settings::follow_newest). During a replay or in the form of a new run
// only a toast offers it.
#pragma once
#include <limits>
#include <memory>

namespace comera::studio {

struct RunList;
struct UiState;

struct Following {
  std::shared_ptr<const RunList> looked;                     // the list at the last check; null = none yet
  double newest = -std::numeric_limits<double>::infinity();  // latest start time of all runs seen so far
};

// Called once a frame.
void tick_following(UiState& ui);

}  // namespace comera::studio
