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

void Norm::run(Ctx& ctx, const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Parts& parts, Dropout dropout) {
  ctx.ops.run(op::NormForward{y, sum, mean, rstd, parts.x, parts.branch, gamma_.value, beta(), eps_, dropout, ctx.step, parts.thin,
                              parts.before, ctx.training ? after_ : Dropout{}});
}

Tensor Norm::forward(Ctx& ctx, Tensor x, InParts branch, Dropout dropout) {
  const int64_t tokens = x.size(0);
  if (!ctx.training) dropout.probability = 0;
  sum_ = x_ = branch_ = {};  // of a step that was broken off
  thin_.reset();
  held_ = {};
  if (beta_) mean_ = ctx.temp({tokens}, "norm mean");
  rstd_ = ctx.temp({tokens}, "norm rstd");
  // The sum is made of two tensors that others compute again, unless that would go on through block after block.
  const Remake* maker = ctx.keeps() && (branch.thin || (branch && ctx.stash.maker(branch.whole))) ? ctx.stash.maker(x) : nullptr;
  const bool again = maker && maker->depth() < kDeepest;
  if (again) {
    x_ = ctx.stash.keep(ctx, slot_, x);
    if (branch.thin)
      thin_ = branch.thin;
    else
      branch_ = ctx.stash.keep(ctx, slot_, branch.whole);
    dropout_ = dropout;
  }
  Tensor sum = x;
  if (branch.thin)
    sum = ctx.keeps() && !again ? ctx.temp(x.shape(), "norm input") : Tensor();
  else if (branch)
    sum = ctx.in_place_of(branch.whole, "norm input");
  const bool keeps_x = ctx.keeps() && !branch;
  Tensor y = keeps_x ? ctx.temp(x.shape(), "norm") : ctx.in_place_of(x, "norm");
  run(ctx, y, branch ? sum : Tensor(), mean_, rstd_, {x, branch.whole, branch.thin}, dropout);
  if (!ctx.keeps()) {
    mean_ = {};
    rstd_ = {};
    return y;
  }
  x = {};
  branch = {};
  if (!again) sum_ = ctx.stash.keep(ctx, slot_, sum);
  ctx.stash.offer(y, *this);
  return y;
}

Tensor Norm::load_sum(Ctx& ctx, Tensor* y) {
  if (!held_ && sums_again()) return make_sum(ctx, y);
  Tensor sum = held_ ? std::exchange(held_, {}) : ctx.stash.load(ctx, slot_, sum_);
  if (y) {
    *y = ctx.temp(sum.shape(), "norm again");
    const Tensor mean = beta_ ? ctx.temp({sum.size(0)}, "norm mean") : Tensor(), rstd = ctx.temp({sum.size(0)}, "norm rstd");
    run(ctx, *y, {}, mean, rstd, {sum}, {});
  }
  return sum;
}

// Without a product the sum and y overwrite what was recomputed for this call alone.
Tensor Norm::make_sum(Ctx& ctx, Tensor* y) {
  CHECK(x_.maker && (thin_ || branch_.maker), "the parts of a norm's sum were kept");
  Parts parts;
  parts.thin = thin_;
  std::optional<NormOfKept> kept;
  if (thin_) kept = x_.maker->norm_of_kept(ctx);
  if (kept) {
    parts.x = std::move(kept->sum);
    parts.before = std::move(kept->norm);
  } else {
    parts.x = ctx.stash.load(ctx, slot_, x_);
  }
  if (!thin_) parts.branch = ctx.stash.load(ctx, slot_, branch_);
  const int64_t tokens = parts.x.size(0);
  Tensor sum = thin_ ? ctx.temp(parts.x.shape(), "norm input again") : parts.branch;
  const Tensor to = kept ? ctx.temp(sum.shape(), "norm again") : parts.x;
  const Tensor mean = beta_ ? ctx.temp({tokens}, "norm mean") : Tensor(), rstd = ctx.temp({tokens}, "norm rstd");
  run(ctx, to, sum, mean, rstd, parts, dropout_);
  if (y) *y = to;
  return sum;
}

std::optional<Remake::NormOfKept> Norm::norm_of_kept(Ctx& ctx) {
  if (!ctx.stash.exact() || sums_again() || !sum_.exact || after_.probability > 0) return std::nullopt;
  return NormOfKept{sum_.exact, {mean_, rstd_, gamma_.value, beta()}};
}

Tensor Norm::remake(Ctx& ctx) {
  Tensor y, sum = load_sum(ctx, &y);
  if (sums_again() || sum_.maker) held_ = std::move(sum);
  return y;
}

std::pair<Tensor, Tensor> Norm::backward(Ctx& ctx, InParts dy, bool branch, Dropout dropout,
                                         const std::optional<op::NormBackward::Onward>& onward) {
  CHECK(sum_ || sums_again(), "backward of a norm without its forward");
  const Tensor sum = load_sum(ctx, nullptr);
  sum_ = x_ = branch_ = {};
  thin_.reset();
  if (!dy.whole) dy = sum_of_parts(ctx, std::move(dy));
  Tensor dsum = ctx.in_place_of(dy.whole, "dnorm");
  Tensor dbranch = branch ? ctx.in_place_of(sum, "dbranch") : Tensor();
  Tensor dgamma = grad_room(ctx, gamma_), dbeta = beta_ ? grad_room(ctx, *beta_) : Tensor();
  ctx.ops.run(op::NormBackward{dsum, dbranch, dgamma, dbeta, dy.whole, sum, mean_, rstd_, gamma_.value, dropout, ctx.step, dy.thin, after_,
                               onward});
  grad_ready(ctx, gamma_, std::move(dgamma));
  if (beta_) grad_ready(ctx, *beta_, std::move(dbeta));
  mean_ = {};
  rstd_ = {};
  return {std::move(dsum), std::move(dbranch)};
}

}  // namespace comera
