#include "core/layers/tt_linear.h"

#include <cmath>

namespace comera {

void TTMatrix::read_ranks() {
  for (size_t k = 0; k + 1 < cores.size(); ++k) shape.ranks[k + 1] = cores[k]->shape[-1];
}

TensorList TTMatrix::effective(Ctx& ctx) const {
  TensorList out;
  for (size_t k = 0; k + 1 < cores.size(); ++k) {
    out.push_back(ctx.temp(cores[k]->shape, "tt masked core"));
    ctx.ops.rank_mask(out.back(), cores[k]->value, ranks[k]->value, ctx.step);
  }
  out.push_back(cores.back()->value);
  return out;
}

void TTMatrix::mask_gradients(Ctx& ctx) const {
  for (size_t k = 0; k + 1 < cores.size(); ++k)
    ctx.ops.rank_mask_backward(cores[k]->grad, ranks[k]->grad, cores[k]->grad, cores[k]->value, ranks[k]->value, ctx.step);
}

TTLinear::TTLinear(const std::string& name, const TTShape& shape, LinearKind kind, LayerFactory& factory, TTOrder order) : order_(order) {
  ParamSet& params = factory.params();
  const bool as_rest = kind == LinearKind::classifier && factory.classifier_rest_group;
  const ParamGroup core_group = as_rest ? ParamGroup::rest : ParamGroup::core, rank_group = as_rest ? ParamGroup::rest : ParamGroup::rank;

  RankLayer layer;
  layer.name = name;
  layer.in_modes = shape.in_modes;
  layer.out_modes = shape.out_modes;
  layer.mode_sizes = shape.in_modes;
  layer.mode_sizes.insert(layer.mode_sizes.end(), shape.out_modes.begin(), shape.out_modes.end());
  layer.rows = shape.out;
  layer.columns = shape.in;
  // An entry of the dense equivalent then has variance 1/(N+M): each bond's sum of r_k terms meets its own 1/r_k.
  const size_t cores = layer.mode_sizes.size();
  const double sigma = std::pow(1 / static_cast<double>(shape.in + shape.out), 0.5 / static_cast<double>(cores));  // of a core
  for (size_t k = 0; k < cores; ++k) {
    const int64_t before = shape.ranks[k], after = shape.ranks[k + 1];
    layer.cores.push_back(&params.add(name + ".core." + std::to_string(k), {before, layer.mode_sizes[k], after}, ParamKind::tt_core,
                                      core_group, {Init::normal, sigma / std::sqrt(static_cast<double>(after))}));
  }
  for (size_t k = 0; k + 1 < cores; ++k)
    layer.ranks.push_back(
        &params.add(name + ".rank." + std::to_string(k), {shape.ranks[k + 1]}, ParamKind::rank_vector, rank_group, {Init::ones}));
  matrix_.shape = shape;
  matrix_.cores = layer.cores;
  matrix_.ranks = layer.ranks;
  matrix_.bias = &params.add(name + ".bias", {shape.out}, ParamKind::bias, ParamGroup::rest,
                             {Init::uniform, 1 / std::sqrt(static_cast<double>(shape.out))});
  params.add_rank_layer(std::move(layer));
  input_.slot = factory.stash().slot(params, name.c_str(), shape.in, factory.next_site());
}

bool TTLinear::is_sequential(int64_t tokens) const {
  if (order_ != TTOrder::cheaper) return order_ == TTOrder::sequential;
  return sequential_cost(matrix_.shape, tokens) < merged_cost(matrix_.shape, tokens);
}

Tensor TTLinear::forward(Ctx& ctx, Tensor x) {
  matrix_.read_ranks();
  const bool sequential = is_sequential(x.size(0));
  if (ctx.training) input_.kept = ctx.stash.keep(ctx, input_.slot, x);
  Tensor y = sequential ? sequential_.forward(ctx, matrix_, std::move(x)) : merged_.forward(ctx, matrix_, std::move(x));
  if (!ctx.training) {
    merged_.drop();
    sequential_.drop();
  }
  return y;
}

Tensor TTLinear::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(input_.kept, "backward of a TT layer without its forward");
  KeptInput input = input_;
  input_.kept = {};
  if (is_sequential(dy.size(0))) return sequential_.backward(ctx, matrix_, std::move(input), std::move(dy), std::move(into));
  return merged_.backward(ctx, matrix_, std::move(input), std::move(dy), std::move(into));
}

}  // namespace comera
