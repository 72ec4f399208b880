#include "core/layers/blocks.h"

namespace comera {

Tensor sum_of_parts(Ctx& ctx, InParts x) {
  if (!x.thin) return std::move(x.whole);
  const ThinProduct& p = *x.thin;
  const bool adds{x.whole};
  if (!adds) x.whole = ctx.temp({p.t.rows, p.transpose_r ? p.r.rows : p.r.cols}, p.t.tensor.dtype(), "thin product");
  ctx.ops.gemm(x.whole, p.t, false, p.r, p.transpose_r, 1, adds ? 1 : 0);
  return std::move(x.whole);
}

Tensor Chain::forward(Ctx& ctx, Tensor x) {
  for (const auto& layer : layers_) x = layer->forward(ctx, std::move(x));
  return x;
}

InParts Chain::backward_in_parts(Ctx& ctx, InParts dy, Tensor into) {
  for (size_t i = layers_.size(); i-- > 0;) dy = layers_[i]->backward_in_parts(ctx, std::move(dy), i == 0 ? std::move(into) : Tensor());
  return dy;
}

Tensor Checkpointed::forward(Ctx& ctx, Tensor x) {
  if (!ctx.keeps()) return block_->forward(ctx, std::move(x));
  x_ = x;
  Ctx first = ctx;
  first.forgets = true;
  return block_->forward(first, std::move(x));
}

InParts Checkpointed::backward_in_parts(Ctx& ctx, InParts dy, Tensor into) {
  CHECK(x_, "backward of a checkpointed block without its forward");
  block_->forward(ctx, std::exchange(x_, {}));
  return block_->backward_in_parts(ctx, std::move(dy), std::move(into));
}

void add_blocks(Chain& chain, std::vector<std::unique_ptr<Layer>> blocks, int64_t every) {
  std::unique_ptr<Chain> group;
  int64_t in_group = 0;
  for (auto& block : blocks) {
    if (every == 0) {
      chain.add(std::move(block));
      continue;
    }
    if (!group) group = std::make_unique<Chain>();
    group->add(std::move(block));
    if (++in_group < every && &block != &blocks.back()) continue;
    chain.add(std::make_unique<Checkpointed>(std::move(group)));
    in_group = 0;
  }
}

ResidualNorm::ResidualNorm(const std::string& name, std::unique_ptr<Layer> block, int64_t features, double eps, double dropout,
                           LayerFactory& factory, NormKind kind)
    : block_(std::move(block)), norm_(name + ".norm", features, eps, factory, kind), dropout_{dropout, factory.next_site()} {}

Tensor ResidualNorm::forward(Ctx& ctx, Tensor x) {
  InParts branch = block_->forward_in_parts(ctx, x);
  return norm_.forward(ctx, std::move(x), std::move(branch), dropout_);
}

InParts ResidualNorm::backward_in_parts(Ctx& ctx, InParts dy, Tensor into) {
  auto onward = block_->begin_backward(ctx, dy.whole ? dy.whole.size(0) : dy.thin->t.rows);
  auto [dsum, dbranch] = norm_.backward(ctx, std::move(dy), true, dropout_, onward);
  onward.reset();                                                                    // so that the block can free it
  InParts dx = block_->backward_in_parts(ctx, std::move(dbranch), std::move(dsum));  // the two paths meet without a pass of their own
  if (!into) return dx;
  ctx.ops.add(into, into, sum_of_parts(ctx, std::move(dx)));
  return into;
}

PreNormResidual::PreNormResidual(const std::string& name, std::unique_ptr<Layer> block, int64_t features, double eps, double dropout,
                                 LayerFactory& factory, NormKind kind)
    : block_(std::move(block)), norm_(name + ".norm", features, eps, factory, kind), dropout_{dropout, factory.next_site()} {}

Tensor PreNormResidual::forward(Ctx& ctx, Tensor x) {
  const Tensor branch = block_->forward(ctx, norm_.forward(ctx, x, {}, {}));
  Tensor y = ctx.temp(x.shape(), "residual");
  if (ctx.training && dropout_.probability > 0) {
    ctx.ops.dropout(y, branch, dropout_, ctx.step);
    ctx.ops.add(y, y, x);
  } else {
    ctx.ops.add(y, branch, x);
  }
  return y;
}

Tensor PreNormResidual::backward(Ctx& ctx, Tensor dy, Tensor into) {
  Tensor dbranch = ctx.temp(dy.shape(), "dbranch");
  if (dropout_.probability > 0)
    ctx.ops.dropout(dbranch, dy, dropout_, ctx.step);
  else
    ctx.ops.copy(dbranch, dy);
  Tensor dx = norm_.backward(ctx, block_->backward(ctx, std::move(dbranch)), false, {}).first;
  ctx.ops.add(dx, dx, dy);
  if (!into) return dx;
  ctx.ops.add(into, into, dx);
  return into;
}

GatedFeedForward::GatedFeedForward(const std::string& name, std::unique_ptr<Fan> gate_up, Activation kind, std::unique_ptr<Layer> down,
                                   int64_t hidden, LayerFactory& factory)
    : kind_(kind), fan_(std::move(gate_up)), down_(std::move(down)) {
  gate_slot_ = factory.stash().slot(factory.params(), (name + ".gate.y").c_str(), hidden, factory.next_site());
  up_slot_ = factory.stash().slot(factory.params(), (name + ".up.y").c_str(), hidden, factory.next_site());
}

Tensor GatedFeedForward::forward(Ctx& ctx, Tensor x) {
  TensorList both = fan_->forward(ctx, std::move(x));
  Tensor gate = std::move(both[0]), up = std::move(both[1]), y = ctx.temp(gate.shape(), "gated");
  ctx.ops.run(op::GatedForward{kind_, y, gate, up});
  if (ctx.keeps()) {
    gate_ = ctx.stash.keep(ctx, gate_slot_, gate);
    gate = {};
    up_ = ctx.stash.keep(ctx, up_slot_, up);
    ctx.stash.offer(y, *this);
  }
  gate = up = {};
  return down_->forward(ctx, std::move(y));
}

Tensor GatedFeedForward::remake(Ctx& ctx) {
  const Tensor gate = ctx.stash.load(ctx, gate_slot_, gate_), up = ctx.stash.load(ctx, up_slot_, up_);
  Tensor y = ctx.temp(gate.shape(), "gated again");
  ctx.ops.run(op::GatedForward{kind_, y, gate, up});
  return y;
}

Tensor GatedFeedForward::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(gate_ && up_, "backward of a gated layer without its forward");
  const Tensor dh = down_->backward(ctx, std::move(dy));
  TensorList gradients;
  {
    const Tensor gate = ctx.stash.load(ctx, gate_slot_, gate_), up = ctx.stash.load(ctx, up_slot_, up_);
    gate_ = up_ = {};
    Tensor dgate = ctx.temp(gate.shape(), "dgate");
    ctx.ops.run(op::GatedBackward{kind_, dgate, dh, dh, gate, up});  // the gradient of `up` takes the place of dh
    gradients.push_back(std::move(dgate));
  }
  gradients.push_back(dh);
  return fan_->backward(ctx, std::move(gradients), std::move(into));
}

}  // namespace comera
