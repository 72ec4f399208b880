#include "core/methods/rank_objective.h"

#include "core/layers/weights.h"
#include "core/ops/device.h"

namespace comera {
namespace {

struct Structure {
  std::vector<int32_t> bond_begin{0}, layer_bond{0}, mode_sizes;

  explicit Structure(const ParamSet& params) {
    for (const RankLayer& layer : params.rank_layers()) {
      for (const Param* rank : layer.ranks) bond_begin.push_back(bond_begin.back() + static_cast<int32_t>(rank->count()));
      layer_bond.push_back(layer_bond.back() + static_cast<int32_t>(layer.ranks.size()));
      for (int64_t size : layer.mode_sizes) mode_sizes.push_back(static_cast<int32_t>(size));
    }
  }
};

int64_t aligned(int64_t count, size_t bytes_of_one) { return Arena::aligned(count * static_cast<int64_t>(bytes_of_one)); }

}  // namespace

int64_t RankObjective::table_bytes() const {
  if (empty()) return 0;
  const Structure structure(params_);
  int64_t bytes = aligned(static_cast<int64_t>(weights_.size()), size_of(params_.dtype()));
  for (const auto* ints : {&structure.bond_begin, &structure.layer_bond, &structure.mode_sizes})
    bytes += aligned(static_cast<int64_t>(ints->size()), sizeof(int32_t));
  return bytes;
}

void RankObjective::place(Device& device, char* base) {
  if (empty()) return;
  const Structure structure(params_);
  int64_t offset = 0;
  const auto place = [&](const std::vector<int32_t>& values) {
    Tensor tensor(base ? base + offset : nullptr, {static_cast<int64_t>(values.size())}, DType::i32);
    if (base) device.upload(tensor.raw(), values.data(), tensor.bytes());
    offset += Arena::aligned(tensor.bytes());
    return tensor;
  };
  table_.bond_begin = place(structure.bond_begin);
  table_.layer_bond = place(structure.layer_bond);
  table_.mode_sizes = place(structure.mode_sizes);
  table_.layer_weight = Tensor(base ? base + offset : nullptr, {static_cast<int64_t>(weights_.size())}, params_.dtype());
  table_.ranks = params_.ranks();
  if (base) from_host(device, table_.layer_weight, weights_);
}

void RankObjective::set_layer_weights(Device& device, const std::vector<double>& weights) {
  CHECK(weights.size() == weights_.size(), weights.size() << " weights of " << weights_.size() << " layers");
  weights_ = weights;
  if (!empty() && table_.layer_weight.raw()) from_host(device, table_.layer_weight, weights_);
}

void RankObjective::forward(Ctx& ctx) {
  if (paper_)
    for (const RankLayer& layer : params_.rank_layers())
      for (const Param* core : layer.cores) ctx.ops.sum_of_squares(ctx.results, numbers_of(ctx, *core));
  ctx.ops.rank_objective(ctx.results, table_, ctx.step);
}

void RankObjective::backward(Ctx& ctx) {
  ctx.ops.rank_objective_backward(params_.rank_grads(), table_, ctx.results, ctx.step);
  if (!paper_) return;
  for (const RankLayer& layer : params_.rank_layers())
    for (const Param* core : layer.cores) ctx.ops.core_penalty_backward(core->grad, numbers_of(ctx, *core), ctx.step);
}

}  // namespace comera
