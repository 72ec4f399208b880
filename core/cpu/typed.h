// Typed access to the arguments of CpuOps's bodies.
#pragma once
#include "core/ops/step_block.h"
#include "core/tensor/tensor.h"

namespace comera {

// Calls body(T{}) with T the float type of `t`, which check() has verified.
template <class Body>
void by_float_type(const Tensor& t, const Body& body) {
  if (t.dtype() == DType::f32)
    body(float{});
  else
    body(double{});
}

inline const StepScalars& scalars_in(const Tensor& step) { return *static_cast<const StepScalars*>(step.raw()); }
inline StepResults& results_in(const Tensor& results) { return *static_cast<StepResults*>(results.raw()); }

// Least elements of a piece of a parallel region: below it waking a thread does not pay.
inline constexpr int64_t kElementGrain = 1 << 14;

}  // namespace comera
