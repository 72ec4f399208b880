// Adam in its published flavours (METHODS.md 0.2).
#include "core/optim/optimizer.h"

namespace comera {
namespace {

class Adam final : public Rule {
 public:
  Adam(AdamFlavour flavour, const AdamConfig& config, const AdamRestarts& restarts)
      : rule_{flavour, config.beta1, config.beta2, config.eps}, projected_(rule_) {
    projected_.restarts = restarts;
  }

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    const unsigned axes = all_axes(param.shape);
    return {{.name = "m", .shape = gradient, .axes = axes, .follows = StateSpec::keeps},
            {.name = "v", .shape = gradient, .axes = axes, .anew = StateSpec::mean, .follows = StateSpec::keeps_and_mean}};
  }
  void step(Ctx&, Param& param, const Tensor& g, const States& states) override {
    enlisted_.push_back({param.value, g, states["m"].value, states["v"].value, param.group});
  }
  void finish(Ctx& ctx) override {
    ctx.ops.adam(enlisted_, rule_, ctx.step);
    enlisted_.clear();  // its memory stays, so that a steady step allocates nothing
  }
  bool by_entries(const Param&) const override { return true; }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    if (decays_first()) ctx.ops.weight_decay(param.value, param.group, ctx.step);
    ctx.ops.adam_update(u, g, states["m"].value, states["v"].value, projected_, param.group, ctx.step);
  }
  void after_update(Ctx& ctx, Param& param, const States&) override {
    if (!decays_first()) ctx.ops.weight_decay(param.value, param.group, ctx.step);
  }

 private:
  bool decays_first() const { return rule_.flavour == AdamFlavour::torch; }

  const AdamRule rule_;
  AdamRule projected_;  // of updates
  std::vector<AdamTensors> enlisted_;
};

}  // namespace

std::unique_ptr<Rule> make_adam_rule(AdamFlavour flavour, const AdamConfig& config, const AdamRestarts& restarts) {
  return std::make_unique<Adam>(flavour, config, restarts);
}

// torch AdamW: what CoMERA was published with.
std::unique_ptr<Optimizer> AdamConfig::make(const OptimizerSettings&) const {
  return std::make_unique<Optimizer>(make_adam_rule(AdamFlavour::torch, *this));
}

}  // namespace comera
