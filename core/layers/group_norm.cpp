#include "core/layers/conv.h"

namespace comera {

GroupNorm::GroupNorm(const std::string& name, int64_t channels, int64_t groups, int64_t pixels, double eps, LayerFactory& factory)
    : GroupedNorm(name, channels, eps, factory), groups_(groups), pixels_(pixels) {
  CHECK(groups > 0 && channels % groups == 0 && pixels > 0, name << ": " << groups << " groups of " << channels << " channels");
}

GroupedNorm::Statistics GroupNorm::statistics(Ctx& ctx, const Tensor& x) { return statistics_of(ctx, x, x.size(0) / pixels_, groups_); }

}  // namespace comera
