#include "core/layers/blocks.h"

namespace comera {

ActivationLayer::ActivationLayer(Activation kind, const std::string& name, int64_t features, LayerFactory& factory)
    : kind_(kind), slot_(factory.stash().slot(factory.params(), name.c_str(), features, factory.next_site())) {}

Tensor ActivationLayer::forward(Ctx& ctx, Tensor x) {
  Tensor y = ctx.temp(x.shape(), "activation");
  ctx.ops.activation_forward(kind_, y, x);
  if (ctx.keeps()) kept_ = ctx.stash.keep(ctx, slot_, kind_ == Activation::gelu ? x : y);
  return y;
}

Tensor ActivationLayer::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(kept_, "backward of an activation without its forward");
  const Tensor saved = ctx.stash.load(ctx, slot_, kept_);  // relu: y > 0 where x > 0, which is all its slope asks
  kept_ = {};
  ctx.ops.activation_backward(kind_, dy, dy, saved);
  if (!into) return dy;
  ctx.ops.add(into, into, dy);
  return into;
}

Tensor DropoutLayer::forward(Ctx& ctx, Tensor x) {
  if (!ctx.training || dropout_.probability == 0) return x;
  Tensor y = ctx.temp(x.shape(), "dropout");
  ctx.ops.dropout(y, x, dropout_, ctx.step);
  return y;
}

Tensor DropoutLayer::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (dropout_.probability > 0) ctx.ops.dropout(dy, dy, dropout_, ctx.step);
  if (!into) return dy;
  ctx.ops.add(into, into, dy);
  return into;
}

}  // namespace comera
