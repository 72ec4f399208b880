// GaLore (METHODS.md 2): a rule on the gradient projected to its leading singular vectors.
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

class SvdProjector final : public Projector {
 public:
  std::vector<StateSpec> declare(const Projection& p) const override { return {stored_projection(p)}; }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }
  // The op fixes the signs of the directions, so momentum does not flip with the whims of the decomposition.
  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t) override {
    ctx.ops.singular_basis(states["projection"].value, g, !p.right);
  }
};

// The same on the right of the gradient that a basis on the left has made shorter.
class TwoSidedSvdProjector final : public Projector {
 public:
  std::vector<StateSpec> declare(const Projection& p) const override {
    CHECK(p.right, "a projection on both sides counts as one on the right");
    Projection left = p;
    left.right = false;
    return {stored_projection(p), stored_projection(left, "projection_left")};
  }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }
  Shape projected(const Projection& p) const override { return {p.rank, p.rank}; }
  void refresh(Ctx& ctx, const Projection&, const States& states, const Tensor& g, int64_t) override {
    ctx.ops.singular_basis(states["projection"].value, g, false);
    ctx.ops.singular_basis(states["projection_left"].value, g, true);
  }
  void down(Ctx& ctx, const Projection& p, const States& states, const Tensor& r, const Tensor& g) override {
    const Tensor shorter = ctx.temp({p.rank, p.gradient[1]}, "gradient projected on the left");
    ctx.ops.gemm(shorter, states["projection_left"].value, true, g, false);
    Projector::down(ctx, p, states, r, shorter);
  }
  void up(Ctx& ctx, const Projection& p, const States& states, const Tensor& w, const Tensor& u, double alpha) override {
    const Tensor longer = ctx.temp({p.gradient[0], p.rank}, "update brought back on the left");
    ctx.ops.gemm(longer, states["projection_left"].value, false, u, false);
    Projector::up(ctx, p, states, w, longer, alpha);
  }
};

// Parameters that are not projected are "a plain group with the same optimizer at full rank" (0.5): with 8-bit moments that
// is 8-bit Adam's own rule.
std::unique_ptr<Rule> rule_inside_galore(const std::string& name, const OptimizerSettings& all) {
  if (name == "adam") return make_adam_rule(AdamFlavour::huggingface, all.adam);
  if (name == "adam8bit") return make_adam8bit_rule(all.adam, all.adam8bit);
  CHECK(name == "adafactor", "GaLore around '" << name << "'");
  return make_adafactor_rule(all.adafactor);
}

ProjectedOptions::Side side_of(const std::string& name) {
  if (name == "longer") return ProjectedOptions::longer;
  if (name == "left") return ProjectedOptions::left;
  if (name == "right" || name == "both") return ProjectedOptions::right;
  CHECK(name == "shorter", "GaLore on the side '" << name << "'");
  return ProjectedOptions::shorter;
}

}  // namespace

std::unique_ptr<Projector> make_svd_projector() { return std::make_unique<SvdProjector>(); }
std::unique_ptr<Projector> make_two_sided_svd_projector() { return std::make_unique<TwoSidedSvdProjector>(); }

std::unique_ptr<Optimizer> GaloreConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_projected_rule(
      rule_inside_galore(rule, all), side == "both" ? make_two_sided_svd_projector() : make_svd_projector(),
      {.rank = rank, .gap = gap, .scale = scale, .together = refresh == "together", .side = side_of(side), .sums = sums == "projected"}));
}

}  // namespace comera
