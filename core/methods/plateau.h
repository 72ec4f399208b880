// Notices when a loss stops falling. Plain data, so that it is part of a checkpoint and a resumed run switches its
// stage at the same step.
#pragma once
#include <cstdint>

#include "core/base/json.h"

namespace comera {

struct PlateauState {
  int64_t steps = 0;      // losses seen
  double average = 0;     // exponential average, not yet corrected for its start at 0
  double best = 0;        // best corrected average
  int64_t best_step = 0;  // when it was seen; 0 = not yet

  void update(double loss);
  double smoothed() const;
  // `patience` steps have passed without a better smoothed loss.
  bool reached(int64_t patience) const { return best_step > 0 && steps - best_step >= patience; }

  Json to_json() const;
  static PlateauState from_json(const Json& json);
};

}  // namespace comera
