// GaLore (METHODS.md 2): Adam on the gradient projected to its leading singular vectors.
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

class SvdProjector final : public Projector {
 public:
  std::vector<StateSpec> declare(const Projection& p) const override {
    return {{.name = "projection", .shape = p.right ? Shape{p.rank, p.gradient[1]} : Shape{p.gradient[0], p.rank}}};
  }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }
  // The op fixes the signs of the directions, so momentum does not flip with the whims of the decomposition.
  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t) override {
    ctx.ops.singular_basis(states["projection"].value, g, !p.right);
  }
};

}  // namespace

std::unique_ptr<Projector> make_svd_projector() { return std::make_unique<SvdProjector>(); }

// Parameters that are not projected are "a plain group with the same optimizer at full rank" (0.5): with 8-bit moments that
// is 8-bit Adam's own rule.
std::unique_ptr<Optimizer> make_galore(const AdamConfig& config, const GaloreConfig& options) {
  std::unique_ptr<Rule> inner =
      options.eight_bit ? make_adam8bit_rule(config, {.min_size = options.min_size}) : make_adam_rule(AdamFlavour::huggingface, config);
  return std::make_unique<Optimizer>(
      make_projected_rule(std::move(inner), make_svd_projector(),
                          {.rank = options.rank, .gap = options.gap, .scale = options.scale, .together = options.refresh == "together"}));
}

}  // namespace comera
