#include <utility>

#include "core/layers/conv.h"

namespace comera {

Tensor ResidualSum::forward(Ctx& ctx, Tensor x) {
  Tensor side = shortcut_ ? shortcut_->forward(ctx, x) : x;
  const Tensor branch = body_->forward(ctx, std::move(x));
  Tensor y = ctx.temp(branch.shape(), "residual");
  ctx.ops.add(y, branch, side);
  return y;
}

Tensor ResidualSum::backward(Ctx& ctx, Tensor dy, Tensor into) {
  Tensor dbranch = ctx.temp(dy.shape(), "dbranch");
  ctx.ops.copy(dbranch, dy);
  Tensor dx = body_->backward(ctx, std::move(dbranch), std::move(into));
  if (shortcut_) return shortcut_->backward(ctx, std::move(dy), std::move(dx));
  ctx.ops.add(dx, dx, dy);
  return dx;
}

}  // namespace comera
