#include "core/layers/interaction.h"

namespace comera {

InteractionLayer::InteractionLayer(const std::string& name, int64_t vectors, int64_t width, bool itself, LayerFactory& factory)
    : vectors_(vectors),
      width_(width),
      itself_(itself),
      slot_(factory.stash().slot(factory.params(), name.c_str(), vectors * width, factory.next_site())) {}

Tensor InteractionLayer::forward(Ctx& ctx, Tensor z) {
  Tensor y = ctx.temp({z.size(0), width_ + DotPairs{vectors_, itself_}.count()}, "interaction");
  ctx.ops.run(op::DotInteraction{y, z.view({z.size(0), vectors_, width_}), itself_});
  if (ctx.keeps()) kept_ = ctx.stash.keep(ctx, slot_, z);
  return y;
}

Tensor InteractionLayer::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(kept_, "backward of an interaction without its forward");
  const Tensor z = ctx.stash.load(ctx, slot_, kept_);
  kept_ = {};
  const Shape vectors{z.size(0), vectors_, width_};
  Tensor dz = ctx.temp(z.shape(), "dinteraction");
  ctx.ops.run(op::DotInteractionBackward{dz.view(vectors), dy, z.view(vectors), itself_});
  if (!into) return dz;
  ctx.ops.add(into, into, dz);
  return into;
}

}  // namespace comera
