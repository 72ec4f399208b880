// Batches of several parts and clipping, as both devices compute them.
#pragma once
#include <cmath>

#include "core/base/hd.h"
#include "core/ops/step_block.h"

namespace comera {

// The factor on the gradient of the part's mean.
HD double add_part(StepResults& r) {
  r.part_loss += r.ce * r.examples;
  r.part_examples += r.examples;
  r.part_correct += r.correct;
  return r.examples;
}

HD void finish_parts(StepResults& r) {
  r.ce = r.part_examples > 0 ? r.part_loss / r.part_examples : 0;
  r.examples = r.part_examples;
  r.correct = r.part_correct;
}

HD double gradient_weight(const StepResults& r) { return r.ce_weight / (r.examples > 1 ? r.examples : 1); }

HD double clip_factor(const StepResults& r, double limit) {
  const double factor = limit / (std::sqrt(r.grad_norm2) + 1e-6);
  return factor < 1 ? factor : 1;  // NaN: 1
}

}  // namespace comera
