#include <utility>

#include "core/layers/blocks.h"

namespace comera {

ActivationLayer::ActivationLayer(Activation kind, const std::string& name, int64_t features, LayerFactory& factory)
    : kind_(kind), slot_(factory.stash().slot(factory.params(), name.c_str(), features, factory.next_site())) {}

Tensor ActivationLayer::forward(Ctx& ctx, Tensor x) {
  Tensor y = ctx.temp(x.shape(), "activation");
  ctx.ops.activation_forward(kind_, y, x);
  if (ctx.keeps()) {
    const bool output_is_enough = kind_ == Activation::tanh || kind_ == Activation::relu;
    keeps_input_ = !output_is_enough || ctx.stash.maker(x);
    kept_ = ctx.stash.keep(ctx, slot_, keeps_input_ ? x : y);
    if (keeps_input_) ctx.stash.offer(y, *this);
  }
  return y;
}

Tensor ActivationLayer::load_input(Ctx& ctx) {
  if (held_) return std::exchange(held_, {});
  return ctx.stash.load(ctx, slot_, kept_);
}

Tensor ActivationLayer::remake(Ctx& ctx) {
  Tensor x = load_input(ctx), y = ctx.temp(x.shape(), "activation again");
  ctx.ops.activation_forward(kind_, y, x);
  if (kept_.maker) held_ = std::move(x);
  return y;
}

Tensor ActivationLayer::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(kept_, "backward of an activation without its forward");
  Tensor saved = load_input(ctx);  // relu: x > 0 where y > 0, which is all its slope asks
  if (keeps_input_ && kind_ == Activation::tanh) {
    Tensor y = ctx.temp(saved.shape(), "activation again");
    ctx.ops.activation_forward(kind_, y, saved);
    saved = std::move(y);
  }
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
  maker_ = ctx.keeps() ? ctx.stash.maker(x) : nullptr;
  if (maker_) ctx.stash.offer(y, *this);
  return y;
}

Tensor DropoutLayer::remake(Ctx& ctx) {
  Tensor y = maker_->remake(ctx);
  ctx.ops.dropout(y, y, dropout_, ctx.step);
  return y;
}

Tensor DropoutLayer::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (dropout_.probability > 0) ctx.ops.dropout(dy, dy, dropout_, ctx.step);
  if (!into) return dy;
  ctx.ops.add(into, into, dy);
  return into;
}

}  // namespace comera
