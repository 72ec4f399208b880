// Adafactor (METHODS.md 0.3): of the second moments only the means of rows and columns are kept.
#include "core/optim/factored_states.h"
#include "core/optim/optimizer.h"

namespace comera {
namespace {

class Adafactor final : public Rule {
 public:
  explicit Adafactor(const AdafactorConfig& config) : config_(config) {}

  // A vector has a second moment an element.
  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    const unsigned axes = all_axes(param.shape);
    std::vector<StateSpec> specs;
    if (gradient.rank() == 1)
      specs.push_back({.name = "v", .shape = gradient, .axes = axes, .anew = StateSpec::mean});
    else
      specs = factored_states(param, gradient, "row", "column");
    if (config_.beta1 > 0) specs.push_back({.name = "m", .shape = gradient, .axes = axes});
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    const Tensor u = ctx.temp(param.shape, "update");
    update(ctx, param, u, g, states);
    ctx.ops.axpy(param.value, 1, u);
  }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    const ParamState *v = states.find("v"), *m = states.find("m");
    const Tensor row = v ? v->value : states["row"].value, column = v ? Tensor() : states["column"].value;
    ctx.ops.factored_moments(row, column, g, config_.decay_exponent, config_.eps, ctx.step);
    ctx.ops.factored_update(u, g, row, column);
    ctx.ops.adafactor_update(u, param.value, m ? m->value : Tensor(), rule(), param.group, ctx.step);
  }

 private:
  AdafactorRule rule() const {
    return {.beta1 = config_.beta1,
            .clip = config_.clip,
            .least_rms = config_.least_rms,
            .scale_parameter = config_.scale_parameter,
            .relative_step = config_.relative_step,
            .warmup_init = config_.warmup_init};
  }

  const AdafactorConfig config_;
};

}  // namespace

std::unique_ptr<Rule> make_adafactor_rule(const AdafactorConfig& config) { return std::make_unique<Adafactor>(config); }

std::unique_ptr<Optimizer> make_adafactor(const AdafactorConfig& config) {
  return std::make_unique<Optimizer>(make_adafactor_rule(config));
}

// AdaLomo (METHODS.md 9): no first moment, steps relative to each parameter.
std::unique_ptr<Optimizer> make_adalomo(const AdalomoConfig& config) {
  return make_adafactor({.clip = config.clip, .scale_parameter = true, .least_rms = config.least_rms});
}

}  // namespace comera
