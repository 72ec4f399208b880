#include "core/layers/grads.h"

namespace comera {

Tensor grad_room(Ctx& ctx, Param& param) {
  if (param.trainable && param.way == GradWay::kept && param.handed_over == 0) return param.grad;
  return ctx.temp(param.shape, "gradient");
}

void grad_ready(Ctx& ctx, Param& param, Tensor grad) {
  if (!param.trainable) return;
  const bool first = param.handed_over == 0, last = ++param.handed_over == param.uses;
  if (last) param.handed_over = 0;
  switch (param.way) {
    case GradWay::kept:
      if (!first) ctx.ops.axpy(param.grad, 1, grad);
      return;
    case GradWay::summed:
      ctx.ops.axpy(param.grad, 1, grad);
      return;
    case GradWay::projected:
      CHECK(ctx.taker, param.name << ": no taker to project its gradient");
      ctx.taker->add_projected(ctx, param, grad);
      return;
    case GradWay::given:
      if (!first) ctx.ops.axpy(param.pending, 1, grad);
      if (first && !last) param.pending = std::move(grad);
      if (!last) return;
      CHECK(ctx.taker, param.name << ": no taker for its gradient");
      ctx.taker->take(ctx, param, first ? grad : param.pending);
      param.pending = {};
  }
}

}  // namespace comera
