// GaLore (METHODS.md 2): a rule on the gradient projected to its leading singular vectors. The ops fix their signs, so momentum does not
// flip with the whims of a decomposition.
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"
#include "core/optim/subspace.h"

namespace comera {
namespace {

class SvdProjector final : public Projector {
 public:
  explicit SvdProjector(int64_t passes) : passes_(passes) {}
  std::vector<StateSpec> declare(const Projection& p) const override { return {stored_projection(p)}; }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }
  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t number) override {
    leading_directions(ctx, p, states["projection"].value, g, number, passes_);
  }

 private:
  const int64_t passes_;
};

// The same on the right of the gradient that a basis on the left has made shorter.
class TwoSidedSvdProjector final : public Projector {
 public:
  explicit TwoSidedSvdProjector(int64_t passes) : passes_(passes) {}
  std::vector<StateSpec> declare(const Projection& p) const override {
    CHECK(p.right, "a projection on both sides counts as one on the right");
    return {stored_projection(p), stored_projection(on_the_left(p), "projection_left")};
  }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }
  Shape projected(const Projection& p) const override { return {p.rank, p.rank}; }
  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t number) override {
    leading_directions(ctx, p, states["projection"].value, g, number, passes_);
    leading_directions(ctx, on_the_left(p), states["projection_left"].value, g, number, passes_);
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

 private:
  static Projection on_the_left(Projection p) {
    p.right = false;
    return p;
  }
  const int64_t passes_;
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

std::unique_ptr<Projector> make_svd_projector(int64_t passes) { return std::make_unique<SvdProjector>(passes); }
std::unique_ptr<Projector> make_two_sided_svd_projector(int64_t passes) { return std::make_unique<TwoSidedSvdProjector>(passes); }

std::unique_ptr<Optimizer> GaloreConfig::make(const OptimizerSettings& all) const {
  const int64_t of_subspace = passes_of(decomposition, passes);
  return std::make_unique<Optimizer>(make_projected_rule(
      rule_inside_galore(rule, all), side == "both" ? make_two_sided_svd_projector(of_subspace) : make_svd_projector(of_subspace),
      {.rank = rank, .gap = gap, .scale = scale, .together = refresh == "together", .side = side_of(side), .sums = sums == "projected"}));
}

}  // namespace comera
