#include "core/methods/model_size.h"

#include <algorithm>

namespace comera {
namespace {
Shape with_size(const Shape& shape, int axis, int64_t size) {
  Shape out;
  for (int each = 0; each < shape.rank(); ++each) out.push_back(each == axis ? size : shape[each]);
  return out;
}
}  // namespace

void set_ranks(ParamSet& params, const LiveRanks& ranks) {
  CHECK(ranks.size() == params.rank_layers().size(), "ranks of another model");
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankLayer& layer = params.rank_layers()[i];
    CHECK(ranks[i].size() == layer.ranks.size(), layer.name << ": ranks of another model");
    for (size_t bond = 0; bond < ranks[i].size(); ++bond) {
      Param &before = *layer.cores[bond], &after = *layer.cores[bond + 1];
      layer.ranks[bond]->shape = {ranks[i][bond]};
      before.shape = with_size(before.shape, before.shape.rank() - 1, ranks[i][bond]);
      after.shape = with_size(after.shape, 0, ranks[i][bond]);
    }
  }
}

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
