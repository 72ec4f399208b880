// When which matrix of a projected optimizer gets a new projection. A function of the step alone, so a resumed run needs
// nothing stored.
#pragma once
#include <cstdint>

#include "core/base/error.h"

namespace comera {

class RefreshSchedule {
 public:
  // together: all at steps 1, 1 + gap, ... (steps count from 1). Otherwise all at step 1, where none has a projection yet, then in
  // turn: each once in `gap` steps, at most ceil(matrices / gap) a step.
  RefreshSchedule(int64_t matrices, int64_t gap, bool together) : matrices_(matrices), gap_(gap), together_(together) {
    CHECK(matrices >= 0 && gap > 0, matrices << " matrices, a gap of " << gap);
  }

  // `times`: the matrix has so many times the gap.
  bool due(int64_t matrix, uint64_t step, int64_t times = 1) const {
    const int64_t passed = static_cast<int64_t>(step) - 1, first = together_ ? 0 : turn(matrix);
    return passed == 0 || (passed >= first && (passed - first) % (gap_ * times) == 0);
  }
  // How many refreshes of the matrix came before one that is due, if none was left out: 0 at step 1.
  int64_t number(int64_t matrix, uint64_t step) const {
    const int64_t passed = static_cast<int64_t>(step) - 1, first = together_ ? 0 : turn(matrix);
    return passed == 0 ? 0 : (passed - first) / gap_ + (first > 0 ? 1 : 0);
  }
  // The newest step up to `step`, which is 1 or more, at which the matrix is due.
  uint64_t last(int64_t matrix, uint64_t step) const {
    const int64_t passed = static_cast<int64_t>(step) - 1, first = together_ ? 0 : turn(matrix);
    return passed < first ? 1 : static_cast<uint64_t>(1 + first + (passed - first) / gap_ * gap_);
  }
  bool any_due(uint64_t step) const {
    for (int64_t matrix = 0; matrix < matrices_; ++matrix)
      if (due(matrix, step)) return true;
    return false;
  }

 private:
  // Spread over the gap: floor(matrix gap / matrices), so no step has more than ceil(matrices / gap).
  int64_t turn(int64_t matrix) const { return matrix * gap_ / matrices_; }

  const int64_t matrices_, gap_;
  const bool together_;
};

}  // namespace comera
