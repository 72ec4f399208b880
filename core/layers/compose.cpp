#include "core/layers/blocks.h"

namespace comera {

Tensor Chain::forward(Ctx& ctx, Tensor x) {
  for (const auto& layer : layers_) x = layer->forward(ctx, std::move(x));
  return x;
}

Tensor Chain::backward(Ctx& ctx, Tensor dy, Tensor into) {
  for (size_t i = layers_.size(); i-- > 0;) dy = layers_[i]->backward(ctx, std::move(dy), i == 0 ? std::move(into) : Tensor());
  return dy;
}

Tensor Checkpointed::forward(Ctx& ctx, Tensor x) {
  if (!ctx.keeps()) return block_->forward(ctx, std::move(x));
  x_ = x;
  Ctx first = ctx;
  first.forgets = true;
  return block_->forward(first, std::move(x));
}

Tensor Checkpointed::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(x_, "backward of a checkpointed block without its forward");
  block_->forward(ctx, std::exchange(x_, {}));
  return block_->backward(ctx, std::move(dy), std::move(into));
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
  Tensor branch = block_->forward(ctx, x);
  return norm_.forward(ctx, std::move(x), std::move(branch), dropout_);
}

Tensor ResidualNorm::backward(Ctx& ctx, Tensor dy, Tensor into) {
  auto [dx, dbranch] = norm_.backward(ctx, std::move(dy), true, dropout_);
  dx = block_->backward(ctx, std::move(dbranch), std::move(dx));  // the two paths meet without a pass of their own
  if (!into) return dx;
  ctx.ops.add(into, into, dx);
  return into;
}

}  // namespace comera
