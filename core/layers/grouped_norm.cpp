#include <utility>

#include "core/layers/conv.h"
#include "core/layers/grads.h"

namespace comera {

GroupedNorm::GroupedNorm(const std::string& name, int64_t channels, double eps, LayerFactory& factory)
    : gamma_(factory.params().add(name + ".gamma", {channels}, ParamKind::norm, ParamGroup::rest, {Init::ones, 0})),
      beta_(factory.params().add(name + ".beta", {channels}, ParamKind::norm, ParamGroup::rest, {Init::zeros, 0})),
      eps_(eps),
      slot_(factory.stash().slot(factory.params(), name.c_str(), channels, factory.next_site())) {}

GroupedNorm::Statistics GroupedNorm::statistics_of(Ctx& ctx, const Tensor& x, int64_t examples, int64_t groups) {
  Statistics made{ctx.temp({examples, groups}, "norm mean"), ctx.temp({examples, groups}, "norm variance")};
  ctx.ops.run(op::GroupStatistics{made.mean, made.variance, x});
  return made;
}

Tensor GroupedNorm::normalised(Ctx& ctx, const Tensor& x, const char* tag) {
  Tensor y = ctx.temp(x.shape(), tag);
  ctx.ops.run(op::GroupNormForward{y, x, statistics_.mean, statistics_.variance, gamma_.value, beta_.value, eps_});
  return y;
}

Tensor GroupedNorm::forward(Ctx& ctx, Tensor x) {
  statistics_ = statistics(ctx, x);
  Tensor y = normalised(ctx, x, "norm");
  if (!ctx.keeps()) {
    statistics_ = {};
    return y;
  }
  x_ = ctx.stash.keep(ctx, slot_, x);
  ctx.stash.offer(y, *this);
  return y;
}

Tensor GroupedNorm::remake(Ctx& ctx) { return normalised(ctx, ctx.stash.load(ctx, slot_, x_), "norm again"); }

Tensor GroupedNorm::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(x_, "backward of a norm without its forward");
  const Tensor x = ctx.stash.load(ctx, slot_, std::exchange(x_, {}));
  Tensor dgamma = grad_room(ctx, gamma_), dbeta = grad_room(ctx, beta_);
  ctx.ops.run(
      op::GroupNormBackward{dy, dgamma, dbeta, dy, x, statistics_.mean, statistics_.variance, gamma_.value, eps_, statistics_.constant});
  statistics_ = {};
  grad_ready(ctx, gamma_, std::move(dgamma));
  grad_ready(ctx, beta_, std::move(dbeta));
  if (!into) return dy;
  ctx.ops.add(into, into, dy);
  return into;
}

}  // namespace comera
