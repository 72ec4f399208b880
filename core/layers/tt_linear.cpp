#include "core/layers/tt_linear.h"

#include <cmath>
#include <utility>

#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {

void TTMatrix::read_ranks() {
  for (size_t k = 0; k + 1 < cores.size(); ++k) shape.ranks[k + 1] = cores[k]->shape[-1];
}

// ---- the matrix ---------------------------------------------------------------------------------------------------

TensorList TTMatrix::effective(Ctx& ctx, TTCalls& calls) const {
  TensorList out;
  for (size_t k = 0; k + 1 < cores.size(); ++k) {
    out.push_back(ctx.temp(cores[k]->shape, "tt masked core"));
    calls.rank_mask(out.back(), numbers_of(ctx, *cores[k]), ranks[k]->value);
  }
  out.push_back(numbers_of(ctx, *cores.back()));
  return out;
}

// ---- its gradients ------------------------------------------------------------------------------------------------

void TTGradients::begin(Ctx& ctx, const TTMatrix& matrix) {
  for (Param* core : matrix.cores) cores.push_back(grad_room(ctx, *core));
  for (Param* rank : matrix.ranks) ranks.push_back(grad_room(ctx, *rank));
  bias = grad_room(ctx, *matrix.bias);
}

Tensor TTGradients::left(Ctx& ctx, const TTMatrix& matrix) const {
  const int64_t height = matrix.shape.padded_in(), rank = matrix.middle_rank();
  Tensor v = matrix.inputs() == 1 ? cores[0].view({height, rank}) : ctx.temp({height, rank}, "tt v");
  if (height > matrix.shape.in) ctx.ops.fill(v.rows(matrix.shape.in, height - matrix.shape.in), 0);
  return v;
}

void TTGradients::mask(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) const {
  for (size_t k = 0; k + 1 < matrix.cores.size(); ++k)
    calls.rank_mask_backward(cores[k], ranks[k], cores[k], numbers_of(ctx, *matrix.cores[k]), matrix.ranks[k]->value);
}

void TTGradients::hand_over(Ctx& ctx, const TTMatrix& matrix) {
  for (size_t k = 0; k < matrix.cores.size(); ++k) grad_ready(ctx, *matrix.cores[k], std::exchange(cores[k], {}));
  for (size_t k = 0; k < matrix.ranks.size(); ++k) grad_ready(ctx, *matrix.ranks[k], std::exchange(ranks[k], {}));
  grad_ready(ctx, *matrix.bias, std::exchange(bias, {}));
  cores.clear();
  ranks.clear();
}

// ---- the layer ----------------------------------------------------------------------------------------------------

TTLinear::TTLinear(const std::string& name, const TTShape& shape, LinearKind kind, LayerFactory& factory, TTOrder order, double std)
    : order_(order) {
  ParamSet& params = factory.params();
  // The published code trains the classifier's cores and rank vectors at the rate of the rest (METHODS.md 1.4, group 3).
  const bool as_rest = kind == LinearKind::classifier;
  const ParamGroup core_group = as_rest ? ParamGroup::rest : ParamGroup::core, rank_group = as_rest ? ParamGroup::rest : ParamGroup::rank;

  RankLayer layer;
  layer.name = name;
  layer.in_modes = shape.in_modes;
  layer.out_modes = shape.out_modes;
  layer.mode_sizes = shape.in_modes;
  layer.mode_sizes.insert(layer.mode_sizes.end(), shape.out_modes.begin(), shape.out_modes.end());
  layer.rows = shape.out;
  layer.columns = shape.in;
  // An entry of the dense equivalent then has variance 1/(N+M), or std^2: each bond's sum of r_k terms meets its own 1/r_k.
  const size_t cores = layer.mode_sizes.size();
  const double variance = std > 0 ? std * std : 1 / static_cast<double>(shape.in + shape.out);
  const double sigma = std::pow(variance, 0.5 / static_cast<double>(cores));  // of a core
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
  alone_ = std::make_unique<TTFan>(std::vector{this});
}

TTLinear::~TTLinear() = default;

bool TTLinear::is_sequential(const Ctx& ctx, int64_t tokens) const {
  if (order_ != TTOrder::cheaper) return order_ == TTOrder::sequential;
  // Where the small calls of all layers are made together, the merged order has a third of the calls: the others take longer than so many
  // multiplications.
  const double calls = ctx.ops.batches_small_calls() ? 1e8 : 0;
  return sequential_cost(matrix_.shape, tokens) + calls < merged_cost(matrix_.shape, tokens);
}

Tensor TTLinear::forward(Ctx& ctx, Tensor x) {
  matrix_.read_ranks();
  const int64_t tokens = x.size(0);
  CHECK(!(grouped_ && is_sequential(ctx, tokens)), "a TT layer merged for other rows than the " << tokens << " that came");
  if (!is_sequential(ctx, tokens)) return std::move(alone_->forward(ctx, std::move(x))[0]);
  alone_->drop();
  if (ctx.keeps()) input_.kept = ctx.stash.keep(ctx, input_.slot, x);
  Tensor y = sequential_.forward(ctx, matrix_, std::move(x), calls_);
  if (!ctx.keeps()) sequential_.drop();
  return y;
}

Tensor TTLinear::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (alone_->waits()) {
    TensorList gradients;
    gradients.push_back(std::move(dy));
    return alone_->backward(ctx, std::move(gradients), std::move(into));
  }
  CHECK(input_.kept, "backward of a TT layer without its forward");
  return sequential_.backward(ctx, matrix_, std::exchange(input_, {input_.slot, {}}), std::move(dy), std::move(into), calls_);
}

}  // namespace comera
