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
  // The sum is made of two tensors that others compute again, unless that would go on through block after block.
  const Remake* maker = ctx.keeps() && branch && ctx.stash.maker(branch) ? ctx.stash.maker(x) : nullptr;
  const bool again = maker && maker->depth() < kDeepest;
  if (again) {
    x_ = ctx.stash.keep(ctx, slot_, x);
    branch_ = ctx.stash.keep(ctx, slot_, branch);
    dropout_ = dropout;
  }
  Tensor sum = branch ? ctx.in_place_of(branch, "norm input") : x;
  const bool keeps_x = ctx.keeps() && !branch;
  Tensor y = keeps_x ? ctx.temp(x.shape(), "norm") : ctx.in_place_of(x, "norm");
  ctx.ops.norm_forward(y, branch ? sum : Tensor(), mean_, rstd_, x, branch, gamma_.value, beta(), eps_, dropout, ctx.step);
  if (!ctx.keeps()) {
    mean_ = {};
    rstd_ = {};
    return y;
  }
  x = branch = {};
  if (!again) sum_ = ctx.stash.keep(ctx, slot_, sum);
  ctx.stash.offer(y, *this);
  return y;
}

Tensor Norm::load_sum(Ctx& ctx, Tensor* y) {
  const auto normalise = [&](const Tensor& to, const Tensor& sum, const Tensor& x, const Tensor& branch, Dropout dropout) {
    const Tensor mean = beta_ ? ctx.temp({x.size(0)}, "norm mean") : Tensor(), rstd = ctx.temp({x.size(0)}, "norm rstd");
    ctx.ops.norm_forward(to, sum, mean, rstd, x, branch, gamma_.value, beta(), eps_, dropout, ctx.step);
  };
  if (held_ || !branch_) {
    Tensor sum = held_ ? std::exchange(held_, {}) : ctx.stash.load(ctx, slot_, sum_);
    if (y) {
      *y = ctx.temp(sum.shape(), "norm again");
      normalise(*y, {}, sum, {}, {});
    }
    return sum;
  }
  // Both were computed again for this call alone, so the sum takes the place of one and y that of the other.
  CHECK(x_.maker && branch_.maker, "the parts of a norm's sum were kept");
  const Tensor x = ctx.stash.load(ctx, slot_, x_);
  Tensor branch = ctx.stash.load(ctx, slot_, branch_);
  normalise(x, branch, x, branch, dropout_);
  if (y) *y = x;
  return branch;
}

Tensor Norm::remake(Ctx& ctx) {
  Tensor y, sum = load_sum(ctx, &y);
  if (branch_ || sum_.maker) held_ = std::move(sum);
  return y;
}

std::pair<Tensor, Tensor> Norm::backward(Ctx& ctx, Tensor dy, bool branch, Dropout dropout) {
  CHECK(sum_ || branch_, "backward of a norm without its forward");
  const Tensor sum = load_sum(ctx, nullptr);
  sum_ = x_ = branch_ = {};
  Tensor dsum = ctx.in_place_of(dy, "dnorm");
  Tensor dbranch = branch ? ctx.in_place_of(sum, "dbranch") : Tensor();
  Tensor dgamma = grad_room(ctx, gamma_), dbeta = beta_ ? grad_room(ctx, *beta_) : Tensor();
  ctx.ops.norm_backward(dsum, dbranch, dgamma, dbeta, dy, sum, mean_, rstd_, gamma_.value, dropout, ctx.step);
  grad_ready(ctx, gamma_, std::move(dgamma));
  if (beta_) grad_ready(ctx, *beta_, std::move(dbeta));
  mean_ = {};
  rstd_ = {};
  return {std::move(dsum), std::move(dbranch)};
}

}  // namespace comera
