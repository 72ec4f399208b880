// Q-GaLore (METHODS.md 7): 8-bit Adam on the gradient projected to its leading singular vectors, which are stored in 4 bits and
// become rarer where they move little. Its int8 weights are a format of weights (core/layers/weights.h).
#include "core/optim/coded.h"
#include "core/optim/optimizer.h"
#include "core/optim/projector.h"
#include "core/optim/subspace.h"

namespace comera {
namespace {

class QGaloreProjector final : public Projector {
 public:
  explicit QGaloreProjector(const QGaloreOptions& options) : options_(options) {}

  std::vector<StateSpec> declare(const Projection& p) const override {
    StateSpec projection = stored_projection(p);
    projection.format = StateSpec::int4;
    projection.group = options_.group;
    if (options_.threshold >= QGaloreOptions::kNever) return {projection};
    return {projection,
            {.name = "direction", .shape = {p.gradient[p.right ? 1 : 0]}},
            {.name = "cosines", .shape = {options_.queue}},
            {.name = kRefreshCounts, .shape = {2}, .format = StateSpec::index}};
  }
  Tensor basis(Ctx& ctx, const Projection&, const States& states) override { return numbers_of(ctx, states["projection"]); }
  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t number) override {
    const ParamState& projection = states["projection"];
    const Tensor basis = numbers_of(ctx, projection);  // stays so where the gradient is not finite
    leading_directions(ctx, p, basis, g, number, options_.passes);
    if (const ParamState* direction = states.find("direction"))
      ctx.ops.run(
          op::LazyRefresh{states["cosines"].value, direction->value, states[kRefreshCounts].value, basis, !p.right, options_.threshold});
    encode(ctx.ops, projection, basis);
  }

 private:
  const QGaloreOptions options_;
};

}  // namespace

std::unique_ptr<Projector> make_qgalore_projector(const QGaloreOptions& options) { return std::make_unique<QGaloreProjector>(options); }

std::unique_ptr<Optimizer> QGaloreConfig::make(const OptimizerSettings& all) const {
  return std::make_unique<Optimizer>(make_projected_rule(
      make_adam8bit_rule(all.adam, all.adam8bit),
      make_qgalore_projector({.threshold = lazy ? threshold : QGaloreOptions::kNever, .passes = passes_of(decomposition, passes)}),
      {.rank = rank, .gap = gap, .scale = scale, .together = refresh == "together"}));
}

}  // namespace comera
