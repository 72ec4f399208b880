// How a body of CpuOps turns its untyped arguments into typed ones.
#pragma once
#include "core/ops/step_block.h"
#include "core/tensor/tensor.h"

namespace comera {

// Calls body(T{}) with T the float type of `t`; the public call has checked that it is one.
template <class Body>
void by_float_type(const Tensor& t, const Body& body) {
  if (t.dtype() == DType::f32)
    body(float{});
  else
    body(double{});
}

inline const StepScalars& scalars_in(const Tensor& step) { return *static_cast<const StepScalars*>(step.raw()); }
inline StepResults& results_in(const Tensor& results) { return *static_cast<StepResults*>(results.raw()); }

// Elements a piece of a parallel region should have at least, so that waking a thread pays.
inline constexpr int64_t kElementGrain = 1 << 14;

}  // namespace comera
