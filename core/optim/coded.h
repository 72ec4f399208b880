// States in 8 bits as numbers, for whoever computes with them (METHODS.md 13).
#pragma once
#include "core/layers/layer.h"
#include "core/optim/state.h"

namespace comera {

// A state as numbers: itself, or decoded into a temporary.
inline Tensor numbers_of(Ctx& ctx, const ParamState& state) {
  if (!state.spec.coded()) return state.value;
  const Tensor numbers = ctx.temp(state.spec.shape, "decoded moment");
  ctx.ops.dequantise8bit(numbers, state.value, state.absmax, state.spec.format == StateSpec::int8_signed);
  return numbers;
}

// Brings numbers back that numbers_of gave and that have changed.
inline void keep_numbers(Ctx& ctx, const ParamState& state, const Tensor& numbers) {
  if (state.spec.coded()) ctx.ops.quantise8bit(state.value, state.absmax, numbers, state.spec.format == StateSpec::int8_signed);
}

}  // namespace comera
