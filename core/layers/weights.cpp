#include "core/layers/weights.h"

#include "core/base/draw.h"
#include "core/ops/group_codes.h"

namespace comera {
namespace {
constexpr GroupCodes kWeightCodes = {8, kWeightGroup};
}

Tensor numbers_of(Ctx& ctx, const Param& param) {
  if (!param.coded()) return param.value;
  Tensor numbers = ctx.temp(param.shape, "decoded weight");
  if (param.format == WeightFormat::int8)
    ctx.ops.run(op::GroupDequantise{numbers, param.value, param.scale, param.zero, kWeightCodes});
  else
    ctx.ops.bf16_load(numbers, param.value);
  return numbers;
}

// Projections of the same parameter are drawn from the site of its name, so these words are others.
void keep_numbers(Ctx& ctx, const Param& param, const Tensor& numbers) {
  const uint32_t site = ~site_of(param.name);
  if (param.format == WeightFormat::int8)
    ctx.ops.run(op::GroupQuantise{param.value, param.scale, param.zero, numbers, kWeightCodes, site, ctx.step});
  else if (param.coded())
    ctx.ops.bf16_keep(param.value, numbers, site, ctx.step);
}

}  // namespace comera
