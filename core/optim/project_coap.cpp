// COAP (METHODS.md 3): a rule on the gradient projected to directions that follow it. Most refreshes are one gradient step on the
// projection; every reset_every-th computes it anew, from the projection before and one look at the gradient.
#include "core/optim/coded.h"
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"
#include "core/optim/subspace.h"

namespace comera {
namespace {

constexpr double kStepSize = 0.1;  // of a refinement, as released

class CoapProjector final : public Projector {
 public:
  explicit CoapProjector(const CoapConfig& config) : config_(config), tucker_(make_tucker_projector(config)) {}

  std::vector<StateSpec> declare(const Projection& p) const override {
    return is_tucker(p) ? tucker_->declare(p) : std::vector{stored_projection(p)};
  }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states["projection"].value; }

  Shape projected(const Projection& p) const override { return is_tucker(p) ? tucker_->projected(p) : Projector::projected(p); }
  void down(Ctx& ctx, const Projection& p, const States& states, const Tensor& r, const Tensor& g) override {
    is_tucker(p) ? tucker_->down(ctx, p, states, r, g) : Projector::down(ctx, p, states, r, g);
  }
  void up(Ctx& ctx, const Projection& p, const States& states, const Tensor& w, const Tensor& u, double alpha) override {
    is_tucker(p) ? tucker_->up(ctx, p, states, w, u, alpha) : Projector::up(ctx, p, states, w, u, alpha);
  }

  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t number) override {
    if (is_tucker(p)) return tucker_->refresh(ctx, p, states, g, number);
    const Tensor basis = states["projection"].value;
    Tensor before;
    if (config_.restore && number > 0) {
      before = ctx.temp(basis.shape(), "projection before");
      ctx.ops.copy(before, basis);
    }
    if (number % config_.reset_every == 0)
      iterate_subspace(ctx, p, basis, number == 0 ? random_start(ctx, p) : basis, g, 1);
    else
      refine(ctx, p, states, basis, g);
    if (before) restore(ctx, p, states, before, basis);
  }

 private:
  bool is_tucker(const Projection& p) const { return p.places > 1 && config_.convolutions == "tucker"; }

  // One step down ||P-projection of G - G||^2 (1 - cosine of G and the moment brought back), clipped to norm 1. Without a first moment
  // the cosine is 0.
  void refine(Ctx& ctx, const Projection& p, const States& states, const Tensor& basis, const Tensor& g) {
    const ParamState* first = states.find("m");
    const Tensor m = first ? numbers_of(ctx, *first) : Tensor(), a = ctx.temp(projected(p), "projected gradient");
    down(ctx, p, states, a, g);
    const Tensor lost = ctx.temp(p.gradient, "lost gradient"), moment = ctx.temp(p.gradient, "moment brought back");
    ctx.ops.scale(lost, g, -1);
    up(ctx, p, states, lost, a, 1);
    if (m)
      ctx.ops.gemm(moment, p.right ? m : basis, false, p.right ? basis : m, false);
    else
      ctx.ops.fill(moment, 0);
    ctx.ops.run(op::CoapDirections{lost, moment, g, config_.normalised});
    const Tensor of_lost = ctx.temp(a.shape(), "projected loss"), step = ctx.temp(basis.shape(), "step of the projection");
    down(ctx, p, states, of_lost, lost);
    if (p.right) {
      ctx.ops.gemm(step, of_lost, true, g, false);
      ctx.ops.gemm(step, a, true, lost, false, 1, 1);
      if (m) ctx.ops.gemm(step, m, true, moment, false, -1, 1);
    } else {
      ctx.ops.gemm(step, g, false, of_lost, true);
      ctx.ops.gemm(step, lost, false, a, true, 1, 1);
      if (m) ctx.ops.gemm(step, moment, false, m, true, -1, 1);
    }
    ctx.ops.run(op::ClippedStep{basis, step, kStepSize});
  }

  // Moments as the new projection sees them: of the first, and of the root of the second where it has the gradient's shape.
  void restore(Ctx& ctx, const Projection& p, const States& states, const Tensor& before, const Tensor& after) {
    const Tensor turn = ctx.temp({p.rank, p.rank}, "turn of the projection");
    if (p.right)
      ctx.ops.gemm(turn, before, false, after, true);
    else
      ctx.ops.gemm(turn, after, true, before, false);
    const Tensor turned = ctx.temp(projected(p), "turned moment");
    const auto turn_into = [&](const Tensor& x) { ctx.ops.gemm(turned, p.right ? x : turn, false, p.right ? turn : x, false); };
    if (const ParamState* m = states.find("m")) {
      const Tensor numbers = numbers_of(ctx, *m);
      turn_into(numbers);
      ctx.ops.copy(numbers, turned);
      keep_numbers(ctx, *m, numbers);
    }
    if (const ParamState* v = states.find("v")) {
      const Tensor numbers = numbers_of(ctx, *v);
      ctx.ops.run(op::Square{numbers, numbers, true});
      turn_into(numbers);
      ctx.ops.run(op::Square{numbers, turned});
      keep_numbers(ctx, *v, numbers);
    }
  }

  const CoapConfig config_;
  const std::unique_ptr<Projector> tucker_;
};

// 8 bits are a way to store these rules here, as released, and not bitsandbytes' Adam.
std::unique_ptr<Rule> rule_inside_coap(const std::string& name, const OptimizerSettings& all) {
  const bool is_coded = name == "adam8bit" || name == "adafactor8bit";
  CHECK(is_coded || name == "adam" || name == "adafactor", "COAP around '" << name << "'");
  std::unique_ptr<Rule> rule =
      name.starts_with("adam") ? make_adam_rule(AdamFlavour::huggingface, all.adam) : make_adafactor_rule(all.adafactor);
  return is_coded ? make_coded_rule(std::move(rule), {.which = all.adam8bit}) : std::move(rule);
}

}  // namespace

std::unique_ptr<Projector> make_coap_projector(const CoapConfig& config) { return std::make_unique<CoapProjector>(config); }

std::unique_ptr<Optimizer> CoapConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_projected_rule(rule_inside_coap(rule, all), make_coap_projector(*this),
                                                         {.rank = rank,
                                                          .gap = gap,
                                                          .rank_ratio = rank_ratio,
                                                          .scale = scale,
                                                          .together = refresh == "together",
                                                          .sums = sums == "projected"}));
}

}  // namespace comera
