// Weights in bf16 or int8 as numbers (METHODS.md 18, 7). There is no copy in full precision: layers and the optimizer decode a weight into
// a temporary each time.
#pragma once
#include "core/layers/layer.h"

namespace comera {

// The value of a parameter in the run's dtype: itself, or decoded into a temporary, which should go as soon as it was used.
Tensor numbers_of(Ctx& ctx, const Param& param);
// Stores numbers that numbers_of() gave and that have changed. Each is rounded up or down at random, by the step and the name of the
// parameter, so that the mean of the stored values is the number.
void keep_numbers(Ctx& ctx, const Param& param, const Tensor& numbers);

// While it lives, Param::value holds the decoded numbers.
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
