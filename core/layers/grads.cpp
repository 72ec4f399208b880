#include "core/layers/grads.h"

namespace comera {

Tensor grad_room(Ctx& ctx, Param& param) {
  if (param.trainable && param.way == GradWay::kept && param.handed_over == 0) return param.grad;
  return ctx.temp(param.shape, "gradient");
}

void grad_of_rows(Ctx& ctx, Param& param, const Tensor& dy, const Tensor& ids) {
  if (param.way == GradWay::rows) {
    ctx.ops.run(op::ScatterDistinctRows{param.grad, param.rows, dy, ids, param.shape[0]});
    return grad_ready(ctx, param, {});
  }
  Tensor dtable = grad_room(ctx, param);
  ctx.ops.scatter_rows(dtable, dy, ids);
  grad_ready(ctx, param, std::move(dtable));
}

void grad_ready(Ctx& ctx, Param& param, Tensor grad) {
  if (!param.trainable) return;
  const bool first = param.handed_over == 0, last = ++param.handed_over == param.uses;
  if (last) param.handed_over = 0;
  switch (param.way) {
    case GradWay::kept:
      if (!first) ctx.ops.axpy(param.grad, 1, grad);
      break;
    case GradWay::summed:
      ctx.ops.axpy(!first && param.second ? param.second : param.grad, 1, grad);
      break;
    case GradWay::rows:
      break;  // written by grad_of_rows()
    case GradWay::projected:
      CHECK(ctx.taker, param.name << ": no taker to project its gradient");
      ctx.taker->add_projected(ctx, param, grad);
      break;
    case GradWay::given:
      if (!first) ctx.ops.axpy(param.pending, 1, grad);
      if (first && !last) param.pending = std::move(grad);
      if (!last) return;
      CHECK(ctx.taker, param.name << ": no taker for its gradient");
      ctx.taker->take(ctx, param, first ? grad : param.pending);
      param.pending = {};
      return;
  }
  if (last && ctx.taker) ctx.taker->complete(ctx, param);
}

}  // namespace comera
