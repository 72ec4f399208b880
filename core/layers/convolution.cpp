#include <utility>

#include "core/layers/conv.h"

namespace comera {

// Stands between the linear layer and the stash of the pass: the patches, and they alone, are kept as the x that they are made of.
class Convolution::Patches final : public Stash {
 public:
  explicit Patches(Convolution& owner) : owner_(owner) {}

  void begin(Stash& below) { below_ = &below; }
  // The next tensor of this block is the patches of x.
  void expect(const Tensor& patches, Tensor x) {
    block_ = patches.lease().block();
    x_ = std::move(x);
  }
  void arrived() { x_ = {}; }
  void drop() { kept_ = {}; }
  Tensor load_x(Ctx& ctx) { return below_->load(ctx, owner_.slot_, kept_); }
  bool has_x() const { return static_cast<bool>(kept_); }

  StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) override {
    return below_->slot(params, owner, features, site);
  }
  Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use use) override {
    if (!x_ || !x.lease() || x.lease().block() != block_) return below_->keep(ctx, slot, x, use);
    if (!kept_) kept_ = below_->keep(ctx, owner_.slot_, x_, Use::other);
    Kept kept;
    kept.maker = &owner_;
    return kept;
  }
  Tensor load(Ctx& ctx, const StashSlot& slot, const Kept& kept) override {
    return kept.maker == &owner_ ? owner_.remake(ctx) : below_->load(ctx, slot, kept);
  }
  bool exact() const override { return below_->exact(); }
  void offer(const Tensor& y, Remake& maker) override { below_->offer(y, maker); }
  Remake* maker(const Tensor& x) const override { return below_->maker(x); }
  void overwritten(const Tensor& x) override { below_->overwritten(x); }
  void forget() override { below_->forget(); }

 private:
  Convolution& owner_;
  Stash* below_ = nullptr;  // of the pass
  int64_t block_ = 0;
  Tensor x_;   // while the linear layer computes forward
  Kept kept_;  // of the step
};

Convolution::Convolution(const std::string& name, const ConvolutionSpec& spec, LayerFactory& factory) : window_(spec.window) {
  CHECK(window_.is_sound(), name << ": windows that do not fit images of " << window_.height << " x " << window_.width);
  linear_ = factory.linear({.name = name,
                            .in = window_.area() * spec.in,
                            .out = spec.out,
                            .kind = LinearKind::convolution,
                            .rows = Rows::sequences,
                            .rows_each = window_.count(),
                            .places = window_.area(),
                            .bias = spec.bias});
  const uint32_t site = factory.next_site();
  if (window_.is_pixel()) return;
  slot_ = factory.stash().slot(factory.params(), (name + ".x").c_str(), spec.in, site);
  patches_ = std::make_unique<Patches>(*this);
}

Convolution::~Convolution() = default;

Tensor Convolution::unfold(Ctx& ctx, const Tensor& x) {
  const int64_t images = x.size(0) / window_.pixels();
  Tensor patches = ctx.temp({images * window_.count(), window_.area() * x.size(1)}, "patches");
  ctx.ops.run(op::Unfold{patches, x, window_});
  return patches;
}

Tensor Convolution::forward(Ctx& ctx, Tensor x) {
  if (!patches_) return linear_->forward(ctx, std::move(x));
  patches_->begin(ctx.stash);
  patches_->drop();
  Tensor patches = unfold(ctx, x);
  if (ctx.keeps()) patches_->expect(patches, std::move(x));
  x = {};
  Ctx inner = ctx.over(*patches_);
  Tensor y = linear_->forward(inner, std::move(patches));
  patches_->arrived();
  return y;
}

Tensor Convolution::remake(Ctx& ctx) {
  CHECK(patches_ && patches_->has_x(), "patches of a convolution without its forward");
  return unfold(ctx, patches_->load_x(ctx));
}

Tensor Convolution::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (!patches_) return linear_->backward(ctx, std::move(dy), std::move(into));
  const int64_t images = dy.size(0) / window_.count();
  patches_->begin(ctx.stash);
  Ctx inner = ctx.over(*patches_);
  const Tensor dpatches = linear_->backward(inner, std::move(dy));
  patches_->drop();
  Tensor dx = ctx.temp({images * window_.pixels(), dpatches.size(1) / window_.area()}, "convolution dx");
  ctx.ops.run(op::Fold{dx, dpatches, window_});
  if (!into) return dx;
  ctx.ops.add(into, into, dx);
  return into;
}

}  // namespace comera
