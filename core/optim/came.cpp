// CAME (METHODS.md 10): a first moment of Adafactor's updates, divided by how far they are from it, of which the means of rows and
// columns are kept.
#include <limits>

#include "core/optim/factored_states.h"
#include "core/optim/optimizer.h"

namespace comera {
namespace {

class Came final : public Rule {
 public:
  explicit Came(const CameConfig& config) : config_(config) {}

  // A vector has no residual.
  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    std::vector<StateSpec> specs = factored_states(param, gradient, "row", "column");
    if (gradient.rank() > 1)
      for (const StateSpec& spec : factored_states(param, gradient, "residual_row", "residual_column")) specs.push_back(spec);
    // No later correction and no clip would hold back the steps of new entries whose squares begin at 0.
    for (StateSpec& spec : specs) spec.grown = StateSpec::mean;
    specs.push_back({.name = "m", .shape = gradient, .axes = all_axes(param.shape)});
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    const Tensor u = ctx.temp(param.shape, "update");
    update(ctx, param, u, g, states);
    ctx.ops.axpy(param.value, 1, u);
  }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    const ParamState* v = states.find("v");
    const Tensor m = states["m"].value, row = v ? v->value : states["row"].value, column = v ? Tensor() : states["column"].value;
    ctx.ops.run(op::FactoredMoments{row, column, g, {.beta = config_.beta2}, config_.eps, ctx.step});
    ctx.ops.factored_update(u, g, row, column);
    ctx.ops.run(op::ClippedMoment{u, m, config_.beta1, config_.clip});
    if (v) {
      ctx.ops.copy(u, m);
    } else {
      const Tensor residual_row = states["residual_row"].value, residual_column = states["residual_column"].value;
      const MomentDecay decay{.beta = config_.beta3, .corrected = config_.correct_residual};
      ctx.ops.run(op::FactoredMoments{residual_row, residual_column, u, decay, config_.residual_eps, ctx.step});
      ctx.ops.factored_update(u, m, residual_row, residual_column);
    }
    const AdafactorRule rule{.clip = std::numeric_limits<double>::infinity(), .scale_parameter = false};
    ctx.ops.adafactor_update(u, param.value, {}, rule, param.group, ctx.step);
  }

 private:
  const CameConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> CameConfig::make(const OptimizerSettings&) const {
  return std::make_unique<Optimizer>(std::make_unique<Came>(*this));
}

}  // namespace comera
