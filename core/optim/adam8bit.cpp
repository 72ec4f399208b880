// bitsandbytes' Adam with moments in 8 bits (METHODS.md 13).
#include "core/optim/coded.h"
#include "core/optim/optimizer.h"

namespace comera {
namespace {

// The rule is bitsandbytes' for all, so that a tensor's trajectory does not depend on which side of min_size it lies.
class Adam8bit final : public Rule {
 public:
  Adam8bit(const AdamConfig& config, const Adam8bitConfig& options)
      : rule_{AdamFlavour::bitsandbytes, config.beta1, config.beta2, config.eps},
        options_(options),
        plain_(make_adam_rule(AdamFlavour::bitsandbytes, config)) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    std::vector<StateSpec> specs = plain_->declare(param, gradient);
    if (!is_kept_in_8_bits(options_, param, gradient.count())) return specs;
    specs[0].format = StateSpec::int8_signed;
    specs[1].format = StateSpec::int8_unsigned;
    specs[1].floor = options_.floor;
    return specs;
  }
  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    const ParamState &m = states["m"], &v = states["v"];
    if (!m.spec.coded()) return plain_->step(ctx, param, g, states);
    enlisted_.push_back({param.value, g, m.value, v.value, m.absmax, v.absmax, param.group});
  }
  void finish(Ctx& ctx) override {
    plain_->finish(ctx);
    ctx.ops.adam8bit(enlisted_, rule_, ctx.step, second_);
    enlisted_.clear();
  }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    const ParamState &m = states["m"], &v = states["v"];
    if (!m.spec.coded()) return plain_->update(ctx, param, u, g, states);
    // A zero tensor plays the parameter: afterwards it is u times (1 - lr decay), as bitsandbytes decays last. With W
    // decayed first, W (1 - lr decay) + back(u) (1 - lr decay) is exactly "update, then decay".
    ctx.ops.fill(u, 0);
    ctx.ops.adam8bit(u, g, m.value, v.value, m.absmax, v.absmax, rule_, param.group, ctx.step, second_);
    ctx.ops.weight_decay(param.value, param.group, ctx.step);
  }
  void after_update(Ctx& ctx, Param& param, const States& states) override {
    if (!states["m"].spec.coded()) plain_->after_update(ctx, param, states);
  }

 private:
  const AdamRule rule_;
  const Adam8bitConfig options_;
  const NeverZero second_ = options_.floor ? NeverZero::positive : NeverZero::none;
  const std::unique_ptr<Rule> plain_;
  std::vector<Adam8bitTensors> enlisted_;
};

}  // namespace

std::unique_ptr<Rule> make_adam8bit_rule(const AdamConfig& config, const Adam8bitConfig& options) {
  return std::make_unique<Adam8bit>(config, options);
}

std::unique_ptr<Optimizer> Adam8bitConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_adam8bit_rule(all.adam, *this));
}

}  // namespace comera
