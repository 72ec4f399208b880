// APOLLO (METHODS.md 6): the step of a matrix is its gradient, each channel as long as Adam makes it in a random projection.
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

class Apollo final : public Rule {
 public:
  Apollo(const AdamConfig& config, const ApolloConfig& options, std::unique_ptr<Projector> projector)
      : adam_{AdamFlavour::huggingface, config.beta1, config.beta2, config.eps},
        options_(options),
        plain_(make_adam_rule(AdamFlavour::huggingface, config)),
        projector_(std::move(projector)) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    if (!is_projected(param)) return plain_->declare(param, gradient);
    const Projection projection = projection_of(param, options_.rank);
    std::vector<StateSpec> specs = projector_->declare(projection);
    const Shape shape = projector_->projected(projection);
    // Draws of another rank have no direction in common with these: the momentum begins anew, the mean square of each channel stays.
    specs.push_back({.name = "m", .shape = shape, .rank_axes = projector_->rank_axes(projection), .drawn_every = options_.gap});
    specs.push_back({.name = "v", .shape = shape, .rank_axes = projector_->rank_axes(projection), .follows = StateSpec::averages_all});
    specs.push_back({.name = "norm", .shape = {1}});
    for (StateSpec& spec : specs) spec.axes = kStartsAnew;
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    if (!is_projected(param)) return plain_->step(ctx, param, g, states);
    const Projection projection = projection_of(param, options_.rank);
    ApolloRule rule{.alpha = options_.alpha, .growth = options_.growth, .alpha_first = options_.alpha_first};
    rule.channels = options_.scaling == "tensor" ? Channels::all : projection.right ? Channels::rows : Channels::columns;
    Tensor r = ctx.temp(projector_->projected(projection), "projected gradient");
    projector_->down(ctx, projection, states, r, g);
    const int64_t channels = rule.channels == Channels::all ? 1 : param.shape[projection.right ? 0 : 1];
    const Tensor scale = ctx.temp({channels}, "scale of each channel");
    ctx.ops.run(op::ApolloScales{scale, r, states["m"].value, states["v"].value, adam_, rule.channels});
    r = {};
    ctx.ops.run(op::ApolloStep{param.value, states["norm"].value, g, scale, adam_, rule, param.group, ctx.step});
  }
  void finish(Ctx& ctx) override { plain_->finish(ctx); }

 private:
  const AdamRule adam_;
  const ApolloConfig options_;
  const std::unique_ptr<Rule> plain_;
  const std::unique_ptr<Projector> projector_;
};

}  // namespace

std::unique_ptr<Rule> make_apollo_rule(const AdamConfig& config, const ApolloConfig& options, std::unique_ptr<Projector> projector) {
  return std::make_unique<Apollo>(config, options, std::move(projector));
}

std::unique_ptr<Optimizer> ApolloConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_apollo_rule(all.adam, *this, make_random_projector(gap)));
}

}  // namespace comera
