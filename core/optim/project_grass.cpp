// Grass (METHODS.md 8): a rule on some rows of the gradient, or columns where they are shorter. Which ones is decided anew from a gradient
// every `gap` steps, and their moments begin at 0.
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

class GrassProjector final : public Projector {
 public:
  explicit GrassProjector(const GrassConfig& config) : config_(config) {}

  std::vector<StateSpec> declare(const Projection& p) const override {
    // Until the next refresh new rows of a larger rank have no weight.
    return {{.name = "selected", .shape = {p.rank}, .format = StateSpec::index, .rank_axes = 1, .follows = StateSpec::keeps},
            {.name = "weight", .shape = {p.rank}, .rank_axes = 1, .follows = StateSpec::keeps}};
  }

  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t) override {
    const Tensor selected = states["selected"].value, weight = states["weight"].value;
    Tensor rows = g;
    if (p.right) {
      rows = ctx.temp({g.size(1), g.size(0)}, "transposed gradient");
      ctx.ops.permute(rows, g, {1, 0});
    }
    const int power = config_.selection == "uniform" ? 0 : config_.selection == "norm2" ? 2 : 1;
    const bool top = config_.selection == "top";
    const RowDraws draws{.power = power, .distinct = !top && !config_.replacement, .by_part = false};
    ctx.ops.run(op::SampleRows{selected, weight, rows, top ? p.rank : 0, p.site, ctx.step, draws});
    ctx.ops.run(op::Square{weight, weight, true});  // down and up multiply by it
    for (const char* moment : {"m", "v"}) ctx.ops.fill(states[moment].value, 0);
  }

  void down(Ctx& ctx, const Projection& p, const States& states, const Tensor& r, const Tensor& g) override {
    ctx.ops.run(op::PickRows{r, g, states["selected"].value, states["weight"].value, p.right});
  }
  void up(Ctx& ctx, const Projection& p, const States& states, const Tensor& w, const Tensor& u, double alpha) override {
    ctx.ops.run(op::AddRows{w, alpha, u, states["selected"].value, states["weight"].value, p.right});
  }

 private:
  const GrassConfig config_;
};

}  // namespace

std::unique_ptr<Projector> make_grass_projector(const GrassConfig& config) { return std::make_unique<GrassProjector>(config); }

// All matrices in one step: the steps since a refresh, for bias corrections and the warm-up, follow from the run's step then.
std::unique_ptr<Optimizer> GrassConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_projected_rule(make_adam_rule(AdamFlavour::torch, all.adam, {.every = gap, .warmup = warmup}),
                                                         make_grass_projector(*this),
                                                         {.rank = rank, .gap = gap, .scale = scale, .together = true}));
}

}  // namespace comera
