#include "core/layers/blocks.h"
#include "core/layers/grads.h"

namespace comera {

Norm::Norm(const std::string& name, int64_t features, double eps, LayerFactory& factory)
    : gamma_(factory.params().add(name + ".gamma", {features}, ParamKind::norm, ParamGroup::rest, {Init::ones, 0})),
      beta_(factory.params().add(name + ".beta", {features}, ParamKind::norm, ParamGroup::rest, {Init::zeros, 0})),
      eps_(eps),
      slot_(factory.stash().slot(factory.params(), name.c_str(), features, factory.next_site())) {}

Tensor Norm::forward(Ctx& ctx, Tensor x, Tensor branch, Dropout dropout) {
  const int64_t tokens = x.size(0);
  if (!ctx.training) dropout.probability = 0;
  mean_ = ctx.temp({tokens}, "norm mean");
  rstd_ = ctx.temp({tokens}, "norm rstd");
  Tensor sum = branch ? ctx.temp(x.shape(), "norm input") : x;
  Tensor y = ctx.temp(x.shape(), "norm");
  ctx.ops.norm_forward(y, branch ? sum : Tensor(), mean_, rstd_, x, branch, gamma_.value, beta_.value, eps_, dropout, ctx.step);
  x = {};
  branch = {};
  if (ctx.keeps()) {
    sum_ = ctx.stash.keep(ctx, slot_, sum);
  } else {
    mean_ = {};
    rstd_ = {};
  }
  return y;
}

std::pair<Tensor, Tensor> Norm::backward(Ctx& ctx, Tensor dy, bool branch, Dropout dropout) {
  CHECK(sum_, "backward of a layer norm without its forward");
  const Tensor sum = ctx.stash.load(ctx, slot_, sum_);
  sum_ = {};
  Tensor dsum = ctx.temp(sum.shape(), "dnorm");
  Tensor dbranch = branch ? ctx.temp(sum.shape(), "dbranch") : Tensor();
  Tensor dgamma = grad_room(ctx, gamma_), dbeta = grad_room(ctx, beta_);
  ctx.ops.norm_backward(dsum, dbranch, dgamma, dbeta, dy, sum, mean_, rstd_, gamma_.value, dropout, ctx.step);
  grad_ready(ctx, gamma_, std::move(dgamma));
  grad_ready(ctx, beta_, std::move(dbeta));
  mean_ = {};
  rstd_ = {};
  return {std::move(dsum), std::move(dbranch)};
}

}  // namespace comera
