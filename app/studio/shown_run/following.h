// Shows the newest run of the database when it starts, if enabled (Settings::follow_newest); during replay or in the form
// of a new run only a message appears.
#pragma once
#include <limits>
#include <memory>

namespace comera::studio {

struct RunList;
struct UiState;

struct Following {
  std::shared_ptr<const RunList> looked;                     // the list that was looked through last; null = none was
  double newest = -std::numeric_limits<double>::infinity();  // when the newest run began that was in one
};

// Once a frame.
void tick_following(UiState& ui);

}  // namespace comera::studio
