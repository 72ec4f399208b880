// GaLore (METHODS.md 2): Adam on the gradient projected to `rank` directions. R = project(G) is (m, r) or (r, n), so
// its moments take 2 r max(m, n) numbers instead of 2 m n.
#include <algorithm>

#include "core/optim/slab.h"

namespace comera {
namespace {

class Galore final : public SlabOptimizer {
 public:
  Galore(const AdamConfig& config, const GaloreConfig& options)
      : rule_{options.eight_bit ? AdamFlavour::bitsandbytes : AdamFlavour::huggingface, config.beta1, config.beta2, config.eps},
        options_(options) {}

  // k = steps taken before this one: k mod gap = 0, so the first step has a projection too. A run that takes over
  // weights without the projection must refresh by hand, or these weights stand still until the next one is due.
  bool refresh_due(uint64_t step) const override { return (step - 1) % static_cast<uint64_t>(options_.gap) == 0; }

  // Moments are kept as they are: published behaviour. The op fixes the signs of the directions, so momentum does not
  // flip with the whims of the decomposition.
  void refresh(Ctx& ctx, Param& param, uint64_t step) override {
    if (is_projected(param)) ctx.ops.singular_basis(slots_of(param)[0].tensor, param.grad, !on_the_right(param));
  }

 private:
  void step(Ctx& ctx, Param& param) override {
    if (is_projected(param))
      update_projected(ctx, param, slots_of(param));
    else
      enlist(param);
  }
  void finish(Ctx& ctx) override { step_enlisted(ctx, rule_); }

  static bool is_projected(const Param& param) { return param.kind == ParamKind::weight && param.shape.rank() == 2; }
  // The side is a function of W's shape, never of R's, whose shape is ambiguous (METHODS.md 0.1).
  static bool on_the_right(const Param& param) { return param.shape[0] >= param.shape[1]; }

  Slots declare(const Param& param) const override {
    Slots slots;
    if (!is_projected(param)) {
      // "A plain group with the same optimizer at full rank" (0.5): with 8-bit moments that is 8-bit Adam's own rule.
      declare_moments(slots, param.shape, options_.eight_bit && param.count() >= options_.min_size && param.kind != ParamKind::table);
      return slots;
    }
    const int64_t m = param.shape[0], n = param.shape[1], r = std::min({options_.rank, m, n});
    const bool right = on_the_right(param);
    const Shape projected = right ? Shape{m, r} : Shape{r, n};
    slots.push_back({"projection", right ? Shape{r, n} : Shape{m, r}});
    declare_moments(slots, projected, options_.eight_bit && projected.count() >= options_.min_size);
    return slots;
  }

  void update_projected(Ctx& ctx, Param& param, const Slots& slots) {
    const bool right = on_the_right(param);
    const Tensor& p = slots[0].tensor;
    const Tensor& w = param.value;
    Tensor r = ctx.temp(slots[1].shape, "projected gradient");
    if (right) {
      ctx.ops.gemm(r, param.grad, false, p, true);  // R (m, r) = G P^T
    } else {
      ctx.ops.gemm(r, p, true, param.grad, false);  // R (r, n) = P^T G
    }
    const bool eight_bit = slots[1].format != SlotFormat::real;
    Tensor u = ctx.temp(slots[1].shape, "projected update");
    if (eight_bit) {
      // A zero tensor plays the parameter: afterwards it is u times (1 - lr decay), as bitsandbytes decays last. With
      // W decayed first, W (1 - lr decay) + scale back(u) (1 - lr decay) is exactly "update, then decay".
      ctx.ops.fill(u, 0);
      ctx.ops.adam8bit(u, r, slots[1].tensor, slots[3].tensor, slots[2].tensor, slots[4].tensor, rule_, param.group, ctx.step);
      ctx.ops.weight_decay(w, param.group, ctx.step);
    } else {
      ctx.ops.adam_update(u, r, slots[1].tensor, slots[2].tensor, rule_, param.group, ctx.step);
    }
    r = {};
    if (right) {
      ctx.ops.gemm(w, u, false, p, false, options_.scale, 1);  // W += scale U P
    } else {
      ctx.ops.gemm(w, p, false, u, false, options_.scale, 1);  // W += scale P U
    }
    if (!eight_bit) ctx.ops.weight_decay(w, param.group, ctx.step);
  }

  const AdamRule rule_;
  const GaloreConfig options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_galore(const AdamConfig& config, const GaloreConfig& options) {
  return std::make_unique<Galore>(config, options);
}

}  // namespace comera
