#include "core/train/model_size.h"

#include <algorithm>

namespace comera {

LiveRanks held_ranks(const ParamSet& params) {
  LiveRanks held;
  for (const RankLayer& layer : params.rank_layers()) {
    held.emplace_back();
    for (const Param* rank : layer.ranks) held.back().push_back(rank->count());
  }
  return held;
}

ModelSize model_size(const ParamSet& params, const LiveRanks& live, const LiveRanks& held, DType dtype) {
  ModelSize size;
  double other = static_cast<double>(params.count());  // what is not a tensor train
  double live_cores = 0, live_rank_values = 0, dense = 0;
  const auto& layers = params.rank_layers();
  for (size_t index = 0; index < layers.size(); ++index) {
    const RankLayer& layer = layers[index];
    for (const Param* core : layer.cores) other -= static_cast<double>(core->count());
    for (const Param* rank : layer.ranks) other -= static_cast<double>(rank->count());
    for (const int64_t rank : live[index]) live_rank_values += static_cast<double>(rank);
    dense += static_cast<double>(layer.dense_entries());
    live_cores += static_cast<double>(live_entries(layer, live[index]));
    size.held_entries += live_entries(layer, held[index]);
  }
  size.model_entries = other + live_cores + live_rank_values;
  size.model_compression = static_cast<double>(params.dense_equivalent()) / std::max(1.0, size.model_entries);
  size.entries = layers.empty() ? other : live_cores;
  size.bytes = size.entries * static_cast<double>(size_of(dtype));
  size.compression = layers.empty() ? 1 : dense / std::max(1.0, live_cores);
  return size;
}

}  // namespace comera
