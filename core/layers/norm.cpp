#include <utility>

#include "core/layers/blocks.h"
#include "core/layers/grads.h"

namespace comera {
namespace {
constexpr int kDeepest = 2;  // a sum is computed again from an x of fewer products and norms than this
}

Norm::Norm(const std::string& name, int64_t features, double eps, LayerFactory& factory, NormKind kind)
    : gamma_(factory.params().add(name + ".gamma", {features}, ParamKind::norm, ParamGroup::rest, {Init::ones, 0})),
      beta_(kind == NormKind::rms ? nullptr
                                  : &factory.params().add(name + ".beta", {features}, ParamKind::norm, ParamGroup::rest, {Init::zeros, 0})),
      eps_(eps),
      slot_(factory.stash().slot(factory.params(), name.c_str(), features, factory.next_site())) {}

Tensor Norm::forward(Ctx& ctx, Tensor x, Tensor branch, Dropout dropout) {
  const int64_t tokens = x.size(0);
  if (!ctx.training) dropout.probability = 0;
  if (beta_) mean_ = ctx.temp({tokens}, "norm mean");
  rstd_ = ctx.temp({tokens}, "norm rstd");
  Tensor sum = branch ? ctx.temp(x.shape(), "norm input") : x;
  Tensor y = ctx.temp(x.shape(), "norm");
  ctx.ops.norm_forward(y, branch ? sum : Tensor(), mean_, rstd_, x, branch, gamma_.value, beta(), eps_, dropout, ctx.step);
  if (!ctx.keeps()) {
    mean_ = {};
    rstd_ = {};
    return y;
  }
  // The sum is made of two tensors that others compute again, unless that would go on through block after block.
  const Remake* maker = branch && ctx.stash.maker(branch) ? ctx.stash.maker(x) : nullptr;
  if (maker && maker->depth() < kDeepest) {
    x_ = ctx.stash.keep(ctx, slot_, x);
    branch_ = ctx.stash.keep(ctx, slot_, branch);
    dropout_ = dropout;
  } else {
    x = branch = {};
    sum_ = ctx.stash.keep(ctx, slot_, sum);
  }
  ctx.stash.offer(y, *this);
  return y;
}

Tensor Norm::load_sum(Ctx& ctx, Tensor* y) {
  Tensor mean, rstd, sum;
  const auto normalise = [&](const Tensor& x, const Tensor& branch) {
    if (beta_) mean = ctx.temp({x.size(0)}, "norm mean");
    rstd = ctx.temp({x.size(0)}, "norm rstd");
    *y = ctx.temp(x.shape(), "norm again");
    ctx.ops.norm_forward(*y, branch ? sum : Tensor(), mean, rstd, x, branch, gamma_.value, beta(), eps_, branch ? dropout_ : Dropout(),
                         ctx.step);
  };
  if (!branch_) {
    sum = ctx.stash.load(ctx, slot_, sum_);
    if (y) normalise(sum, {});
    return sum;
  }
  const Tensor x = ctx.stash.load(ctx, slot_, x_), branch = ctx.stash.load(ctx, slot_, branch_);
  sum = ctx.temp(x.shape(), "norm input");
  Tensor unused;
  if (!y) y = &unused;
  normalise(x, branch);
  return sum;
}

Tensor Norm::remake(Ctx& ctx) {
  Tensor y, sum = load_sum(ctx, &y);
  if (branch_) held_ = std::move(sum);
  return y;
}

std::pair<Tensor, Tensor> Norm::backward(Ctx& ctx, Tensor dy, bool branch, Dropout dropout) {
  CHECK(sum_ || branch_, "backward of a norm without its forward");
  const Tensor sum = held_ ? std::exchange(held_, {}) : load_sum(ctx, nullptr);
  sum_ = x_ = branch_ = {};
  Tensor dsum = ctx.temp(sum.shape(), "dnorm");
  Tensor dbranch = branch ? ctx.temp(sum.shape(), "dbranch") : Tensor();
  Tensor dgamma = grad_room(ctx, gamma_), dbeta = beta_ ? grad_room(ctx, *beta_) : Tensor();
  ctx.ops.norm_backward(dsum, dbranch, dgamma, dbeta, dy, sum, mean_, rstd_, gamma_.value, dropout, ctx.step);
  grad_ready(ctx, gamma_, std::move(dgamma));
  if (beta_) grad_ready(ctx, *beta_, std::move(dbeta));
  mean_ = {};
  rstd_ = {};
  return {std::move(dsum), std::move(dbranch)};
}

}  // namespace comera
