#include <utility>

#include "core/layers/conv.h"

namespace comera {
namespace {

Tensor added(Ctx& ctx, Tensor dx, Tensor into) {
  if (!into) return dx;
  ctx.ops.add(into, into, dx);
  return into;
}

// y (B Q, C) of x (B P, C), or the other way.
Tensor of_windows(Ctx& ctx, const Window& window, const Tensor& x, const char* tag) {
  return ctx.temp({x.size(0) / window.pixels() * window.count(), x.size(1)}, tag);
}
Tensor of_pixels(Ctx& ctx, const Window& window, const Tensor& dy, const char* tag) {
  return ctx.temp({dy.size(0) / window.count() * window.pixels(), dy.size(1)}, tag);
}

}  // namespace

Tensor MaxPooling::forward(Ctx& ctx, Tensor x) {
  Tensor y = of_windows(ctx, window_, x, "max pool");
  place_ = ctx.keeps() ? ctx.temp(y.shape(), DType::u8, "places of the largest") : Tensor();
  ctx.ops.run(op::MaxPool{y, place_, x, window_});
  return y;
}

Tensor MaxPooling::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(place_, "backward of max pooling without its forward");
  Tensor dx = of_pixels(ctx, window_, dy, "max pool dx");
  ctx.ops.run(op::MaxPoolBackward{dx, dy, std::exchange(place_, {}), window_});
  return added(ctx, std::move(dx), std::move(into));
}

Tensor AveragePooling::forward(Ctx& ctx, Tensor x) {
  Tensor y = of_windows(ctx, window_, x, "average pool");
  ctx.ops.run(op::AveragePool{y, x, window_});
  return y;
}

Tensor AveragePooling::backward(Ctx& ctx, Tensor dy, Tensor into) {
  Tensor dx = of_pixels(ctx, window_, dy, "average pool dx");
  ctx.ops.run(op::AveragePoolBackward{dx, dy, window_});
  return added(ctx, std::move(dx), std::move(into));
}

}  // namespace comera
