// States in 8 or 4 bits as numbers, for whoever computes with them (METHODS.md 13, 7).
#pragma once
#include "core/config/optimizers.h"
#include "core/layers/layer.h"
#include "core/optim/state.h"

namespace comera {

// Whether a state of so many numbers is kept in 8 bits. Small ones and, unless asked for, those of embedding tables are not: a table's
// rows are touched so unevenly that one block's largest entry drowns the others.
inline bool is_kept_in_8_bits(const Adam8bitConfig& which, const Param& param, int64_t count) {
  return count >= which.min_size && (param.kind != ParamKind::table || which.embeddings);
}

inline GroupCodes group_codes(const StateSpec& spec) { return {4, spec.group}; }

// The numbers of a coded state, in its shape; the other way.
inline void decode(Ops& ops, const Tensor& numbers, const ParamState& state) {
  if (state.spec.format == StateSpec::int4)
    ops.run(op::GroupDequantise{numbers, state.value, state.absmax, state.zero, group_codes(state.spec)});
  else
    ops.dequantise8bit(numbers, state.value, state.absmax, state.spec.format == StateSpec::int8_signed);
}
inline void encode(Ops& ops, const ParamState& state, const Tensor& numbers) {
  if (state.spec.format == StateSpec::int4)
    ops.run(op::GroupQuantise{state.value, state.absmax, state.zero, numbers, group_codes(state.spec)});
  else
    ops.quantise8bit(state.value, state.absmax, numbers, state.spec.format == StateSpec::int8_signed,
                     state.spec.floor ? NeverZero::positive : NeverZero::none);
}

// A state as numbers: itself, or decoded into a temporary.
inline Tensor numbers_of(Ctx& ctx, const ParamState& state) {
  if (!state.spec.coded()) return state.value;
  const Tensor numbers = ctx.temp(state.spec.shape, "decoded state");
  decode(ctx.ops, numbers, state);
  return numbers;
}

// Brings numbers back that numbers_of gave and that have changed.
inline void keep_numbers(Ctx& ctx, const ParamState& state, const Tensor& numbers) {
  if (state.spec.coded()) encode(ctx.ops, state, numbers);
}

}  // namespace comera
