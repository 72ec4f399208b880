// The newest run of the store comes to be the shown one as soon as it begins, where somebody wants that
// (Settings::follow_newest); whoever looks at the past, or fills the form of a new run, is only told.
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
