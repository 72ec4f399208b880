// Adafactor (METHODS.md 0.3): of the second moments only the means of rows and columns are kept. Flora (METHODS.md 5) adds momentum in a
// random projection.
#include <algorithm>

#include "core/base/draw.h"
#include "core/optim/coded.h"
#include "core/optim/factored_states.h"
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

class Adafactor : public Rule {
 public:
  explicit Adafactor(const AdafactorConfig& config) : config_(config) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    std::vector<StateSpec> specs = factored_states(param, gradient, "row", "column");
    if (config_.beta1 > 0) specs.push_back({.name = "m", .shape = gradient, .axes = all_axes(param.shape), .follows = StateSpec::keeps});
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    const Tensor u = ctx.temp(param.shape, "update");
    update(ctx, param, u, g, states);
    ctx.ops.axpy(param.value, 1, u);
  }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    direction(ctx, u, g, states);
    const ParamState* m = states.find("m");
    ctx.ops.adafactor_update(u, param.value, m ? m->value : Tensor(), rule(), param.group, ctx.step);
  }

 protected:
  // Moves the second moments; u = g without its scale.
  void direction(Ctx& ctx, const Tensor& u, const Tensor& g, const States& states) {
    const ParamState* v = states.find("v");
    const Tensor row = v ? v->value : states["row"].value, column = v ? Tensor() : states["column"].value;
    ctx.ops.factored_moments(row, column, g, config_.decay_exponent, config_.eps, ctx.step);
    ctx.ops.factored_update(u, g, row, column);
  }
  AdafactorRule rule() const {
    return {.beta1 = config_.beta1,
            .clip = config_.clip,
            .least_rms = config_.least_rms,
            .scale_parameter = config_.scale_parameter,
            .relative_step = config_.relative_step,
            .warmup_init = config_.warmup_init};
  }

 private:
  const AdafactorConfig config_;
};

AdafactorConfig without_first_moment(AdafactorConfig config) {
  config.beta1 = 0;
  return config;
}

class Flora final : public Adafactor {
 public:
  Flora(const AdafactorConfig& config, const FloraConfig& options, const Adam8bitConfig& coded, std::unique_ptr<Projector> now,
        std::unique_ptr<Projector> next, std::unique_ptr<Projector> of_sums)
      : Adafactor(without_first_moment(config)),
        options_(options),
        coded_(coded),
        now_(std::move(now)),
        next_(std::move(next)),
        of_sums_(std::move(of_sums)) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    std::vector<StateSpec> specs = Adafactor::declare(param, gradient);
    if (param.way == GradWay::projected)
      for (StateSpec& spec : of_sums_->declare(projection_of_sums(param))) specs.push_back(spec);
    if (options_.beta1 == 0) return specs;
    if (!is_compressed(param)) {
      specs.push_back({.name = "m", .shape = gradient, .axes = all_axes(param.shape), .format = format(param, gradient)});
      return specs;
    }
    const Projection projection = projection_of(param, options_.rank);
    for (const Projector* projector : {now_.get(), next_.get()})
      for (StateSpec& spec : projector->declare(projection)) specs.push_back(spec);
    const Shape projected = now_->projected(projection);
    specs.push_back({.name = "m",
                     .shape = projected,
                     .axes = kStartsAnew,
                     .format = format(param, projected),
                     .rank_axes = now_->rank_axes(projection),
                     .drawn_every = options_.gap});
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    Tensor u = ctx.temp(param.shape, "update");
    direction(ctx, u, g, states);
    if (options_.beta1 > 0) u = is_compressed(param) ? with_history(ctx, param, u, states) : with_momentum(ctx, u, states);
    ctx.ops.adafactor_update(u, param.value, {}, rule(), param.group, ctx.step);
    ctx.ops.axpy(param.value, 1, u);
  }

  Shape sum_shape(const Param& param) const override {
    if (options_.sums != "projected" || !is_projected(param)) return param.shape;
    const Projection projection = projection_of_sums(param);
    return projection.rank < std::min(param.shape[0], param.shape[1]) ? of_sums_->projected(projection) : param.shape;
  }
  void add_projected(Ctx& ctx, const Param& param, const Tensor& sum, const Tensor& g, const States& states) override {
    const Tensor part = ctx.temp(sum.shape(), "projected gradient");
    of_sums_->down(ctx, projection_of_sums(param), states, part, g);
    ctx.ops.axpy(sum, 1, part);
  }
  void step_of_sum(Ctx& ctx, Param& param, const Tensor& sum, const States& states) override {
    const Tensor g = ctx.temp(param.shape, "gradient");
    ctx.ops.fill(g, 0);
    of_sums_->up(ctx, projection_of_sums(param), states, g, sum, 1);
    step(ctx, param, g, states);
  }

  void update(Ctx&, Param& param, const Tensor&, const Tensor&, const States&) override {
    CHECK(false, "Flora inside a projection of '" << param.name << "'");
  }

 private:
  bool is_compressed(const Param& param) const {
    if (!is_projected(param)) return false;
    const int64_t shorter = std::min(param.shape[0], param.shape[1]), longer = std::max(param.shape[0], param.shape[1]);
    return shorter >= options_.rank && longer <= 4 * shorter;
  }

  StateSpec::Format format(const Param& param, const Shape& m) const {
    return options_.momentum_format == "int8" && is_kept_in_8_bits(coded_, param, m.count()) ? StateSpec::int8_signed : StateSpec::real;
  }

  // Draws other than those of the momentum.
  Projection projection_of_sums(const Param& param) const {
    Projection projection = projection_of(param, options_.rank);
    projection.site = site_of(param.name + ".sum");
    return projection;
  }

  Tensor with_momentum(Ctx& ctx, const Tensor& u, const States& states) {
    const Tensor m = numbers_of(ctx, states["m"]);
    ctx.ops.scale(m, m, options_.beta1);
    ctx.ops.axpy(m, 1 - options_.beta1, u);
    ctx.ops.copy(u, m);
    keep_numbers(ctx, states["m"], m);
    return u;
  }

  // The fresh part of the momentum is exact. Where draws change, the history goes into the new ones as part of the whole update.
  Tensor with_history(Ctx& ctx, Param& param, const Tensor& u, const States& states) {
    const Projection projection = projection_of(param, options_.rank);
    const Tensor m = numbers_of(ctx, states["m"]), sum = ctx.temp(param.shape, "update with momentum");
    ctx.ops.scale(sum, u, 1 - options_.beta1);
    now_->up(ctx, projection, states, sum, m, options_.beta1);
    ctx.ops.run(op::FloraHistory{u, m, sum, options_.beta1, options_.gap, ctx.step});
    const Tensor fresh = ctx.temp(m.shape(), "projected update");
    next_->down(ctx, projection, states, fresh, u);
    ctx.ops.axpy(m, 1, fresh);
    keep_numbers(ctx, states["m"], m);
    return sum;
  }

  const FloraConfig options_;
  const Adam8bitConfig coded_;
  const std::unique_ptr<Projector> now_, next_, of_sums_;
};

}  // namespace

std::unique_ptr<Rule> make_adafactor_rule(const AdafactorConfig& config) { return std::make_unique<Adafactor>(config); }

std::unique_ptr<Optimizer> AdafactorConfig::make(const OptimizerSettings&) const {
  return std::make_unique<Optimizer>(make_adafactor_rule(*this));
}

std::unique_ptr<Rule> make_flora_rule(const AdafactorConfig& config, const FloraConfig& options, const Adam8bitConfig& coded,
                                      std::unique_ptr<Projector> now, std::unique_ptr<Projector> next, std::unique_ptr<Projector> of_sums) {
  return std::make_unique<Flora>(config, options, coded, std::move(now), std::move(next), std::move(of_sums));
}

std::unique_ptr<Optimizer> FloraConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_flora_rule(all.adafactor, *this, all.adam8bit, make_random_projector(gap),
                                                     make_random_projector(gap, 1), make_random_projector(1)));
}

// AdaLomo (METHODS.md 9): no first moment, steps relative to each parameter.
std::unique_ptr<Optimizer> AdalomoConfig::make(const OptimizerSettings& all) const {
  return AdafactorConfig{.clip = clip, .scale_parameter = true, .least_rms = least_rms}.make(all);
}

}  // namespace comera
