// Parameters in fewer bits as numbers, for whoever computes with them (METHODS.md 18). There is no second copy of a weight: layers and the
// optimizer decode it into a temporary each time.
#pragma once
#include "core/layers/layer.h"

namespace comera {

// The value of a parameter in the run's dtype: itself, or decoded into a temporary, which should go as soon as it was used.
Tensor numbers_of(Ctx& ctx, const Param& param);
// Brings back numbers that numbers_of gave and that have changed. Each is rounded up or down at random, by the step and the name of the
// parameter, so that the mean of what is stored is what was computed.
void keep_numbers(Ctx& ctx, const Param& param, const Tensor& numbers);

// While it lives, the value of a parameter is its numbers, so that whoever gets the parameter computes with them.
class Decoded {
 public:
  Decoded(Ctx& ctx, Param& param) : param_(param), stored_(param.value) { param.value = numbers_of(ctx, param); }
  ~Decoded() { param_.value = stored_; }
  Decoded(const Decoded&) = delete;

 private:
  Param& param_;
  const Tensor stored_;
};

}  // namespace comera
