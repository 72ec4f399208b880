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

  // One step down ||P-projection of G - G||^2 (1 - cosine of G and the moment brought back), clipped to norm 1, from products with the
  // rank: neither the lost gradient nor the moment brought back is made (METHODS.md 3). Without a first moment the cosine is 0.
  void refine(Ctx& ctx, const Projection& p, const States& states, const Tensor& basis, const Tensor& g) {
    const ParamState* first = states.find("m");
    const Tensor m = first ? numbers_of(ctx, *first) : Tensor(), a = ctx.temp(projected(p), "projected gradient");
    down(ctx, p, states, a, g);
    const auto of_rank = [&](const char* name) { return ctx.temp({p.rank, p.rank}, name); };
    const Tensor s = of_rank("inner products of the projection"), q = of_rank("inner products of the projected gradient");
    ctx.ops.gemm(s, basis, !p.right, basis, p.right);
    ctx.ops.gemm(q, a, p.right, a, !p.right);

    const Shape rows = {p.gradient[0], p.rank};
    const auto of_rows = [&](const char* name) { return m ? ctx.temp(rows, name) : Tensor(); };
    const Tensor of_g = of_rows("gradient's part of the step"), of_moment = of_rows("moment's part of the step");
    {
      Tensor u, gv;  // the moment brought back is U V
      const Tensor uv = of_rows("moment brought back and projected");
      if (m && p.right) {
        u = m, gv = a;
        ctx.ops.gemm(uv, u, false, s, false);
      } else if (m) {
        u = basis, gv = of_rows("gradient projected to the moment");
        ctx.ops.gemm(gv, g, false, m, true);
        const Tensor of_m = of_rank("inner products of the moment");
        ctx.ops.gemm(of_m, m, false, m, true);
        ctx.ops.gemm(uv, u, false, of_m, false);
      }
      ctx.ops.run(op::CoapFactors{s, q, of_g, of_moment, g, u, gv, uv, !p.right, config_.normalised});
    }

    const Tensor step = ctx.temp(basis.shape(), "step of the projection");
    if (p.right) {
      const Tensor towards = m ? of_g : ctx.temp(rows, "gradient's part of the step");
      ctx.ops.gemm(towards, a, false, s, false, 1, m ? -1 : 0);
      if (m) ctx.ops.gemm(q, of_moment, true, m, false, 1, 1);
      ctx.ops.gemm(step, towards, true, g, false);
      ctx.ops.gemm(step, q, false, basis, false, 1, 1);
    } else {
      const Tensor twice = ctx.temp(rows, "gradient projected twice");
      ctx.ops.gemm(twice, g, false, a, true);
      ctx.ops.gemm(step, twice, false, s, false);
      ctx.ops.gemm(step, basis, false, q, false, 1, 1);
      if (m) ctx.ops.axpy(step, -1, of_g);
      if (m) ctx.ops.axpy(step, 1, of_moment);
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
