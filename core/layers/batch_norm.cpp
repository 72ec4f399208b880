#include "core/layers/conv.h"

namespace comera {

BatchNorm::BatchNorm(const std::string& name, int64_t channels, const BatchNormSpec& spec, LayerFactory& factory)
    : GroupedNorm(name, channels, spec.eps, factory),
      spec_(spec),
      mean_(factory.params().add_state(name + ".running_mean", {channels}, 0)),
      variance_(factory.params().add_state(name + ".running_variance", {channels}, 1)) {}

GroupedNorm::Statistics BatchNorm::statistics(Ctx& ctx, const Tensor& x) {
  const int64_t rows = x.size(0), channels = x.size(1);
  const Shape shape{1, channels};
  if (!ctx.training || spec_.frozen) return {mean_.value.view(shape), variance_.value.view(shape), true};
  Statistics batch = statistics_of(ctx, x, 1, channels);
  // A block that is computed twice sees one batch, which counts once.
  const bool again = followed_;
  followed_ = ctx.forgets;
  if (again && !ctx.forgets) return batch;
  const double unbiased = rows > 1 ? static_cast<double>(rows) / static_cast<double>(rows - 1) : 1;
  const auto follow = [&](const Tensor& running, const Tensor& now, double factor) {
    ctx.ops.scale(running, running, 1 - spec_.momentum);
    ctx.ops.axpy(running, spec_.momentum * factor, now);
  };
  follow(mean_.value, batch.mean.view({channels}), 1);
  follow(variance_.value, batch.variance.view({channels}), unbiased);
  return batch;
}

}  // namespace comera
