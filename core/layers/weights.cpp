#include "core/layers/weights.h"

#include "core/base/draw.h"

namespace comera {

Tensor numbers_of(Ctx& ctx, const Param& param) {
  if (!param.coded()) return param.value;
  Tensor numbers = ctx.temp(param.shape, "decoded weight");
  ctx.ops.bf16_load(numbers, param.value);
  return numbers;
}

// Projections of the same parameter are drawn from the site of its name, so these words are others.
void keep_numbers(Ctx& ctx, const Param& param, const Tensor& numbers) {
  if (param.coded()) ctx.ops.bf16_keep(param.value, numbers, ~site_of(param.name), ctx.step);
}

}  // namespace comera
