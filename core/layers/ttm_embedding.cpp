#include "core/layers/ttm_embedding.h"

#include <cmath>
#include <utility>

#include "core/layers/grads.h"
#include "core/layers/tt_linear.h"
#include "core/layers/weights.h"

namespace comera {
namespace {
double real(int64_t value) { return static_cast<double>(value); }
}  // namespace

double ttm_cost(const TTShape& shape, size_t split, int64_t tokens) {
  const size_t cores = shape.in_modes.size();
  const std::vector<int64_t>& r = shape.ranks;
  const auto size = [&](size_t k) { return real(shape.in_modes[k] * shape.out_modes[k]); };
  double cost = 0, merged = size(0);
  for (size_t k = 1; k < split; ++k) {
    merged *= size(k);
    cost += merged * real(r[k] * r[k + 1]);
  }
  merged = size(cores - 1);
  for (size_t k = cores - 1; k-- > split;) {
    merged *= size(k);
    cost += merged * real(r[k] * r[k + 1]);
  }
  return cost + real(tokens) * real(r[split]) * real(shape.padded_out());
}

size_t ttm_split(const TTShape& shape, int64_t tokens) {
  size_t best = 1;
  for (size_t split = 2; split < shape.in_modes.size(); ++split)
    if (ttm_cost(shape, split, tokens) < ttm_cost(shape, best, tokens)) best = split;
  return best;
}

TTMEmbedding::TTMEmbedding(const std::string& name, const TTShape& shape, LayerFactory& factory, double std) : shape_(shape) {
  ParamSet& params = factory.params();
  const size_t cores = shape.in_modes.size();
  RankLayer layer;
  layer.name = name;
  layer.in_modes = shape.in_modes;
  layer.out_modes = shape.out_modes;
  layer.rows = shape.in;
  layer.columns = shape.out;
  const double of_core = std::pow(std, 1 / real(cores));
  for (size_t k = 0; k < cores; ++k) {  // an entry of the table then has variance std^2, as in a dense one
    layer.mode_sizes.push_back(shape.in_modes[k] * shape.out_modes[k]);
    cores_.push_back(&params.add(name + ".core." + std::to_string(k), core_shape(k), ParamKind::tt_core, ParamGroup::core,
                                 {Init::normal, of_core / std::sqrt(real(shape.ranks[k + 1]))}));
  }
  for (size_t k = 0; k + 1 < cores; ++k)
    ranks_.push_back(
        &params.add(name + ".rank." + std::to_string(k), {shape.ranks[k + 1]}, ParamKind::rank_vector, ParamGroup::rank, {Init::ones}));
  layer.cores = cores_;
  layer.ranks = ranks_;
  params.add_rank_layer(std::move(layer));
}

Shape TTMEmbedding::core_shape(size_t k) const { return {shape_.ranks[k], shape_.in_modes[k], shape_.out_modes[k], shape_.ranks[k + 1]}; }

// left_k (M n.., r_k): L_{k-1} (M, N, r) E_k (r, m n r') = (M, N, m, n, r'), which becomes (M m, N n, r').
void TTMEmbedding::merge_left(Ctx& ctx, size_t split) {
  left_.reset(split);
  left_[0] = effective_[0].view({shape_.in_modes[0], shape_.out_modes[0], shape_.ranks[1]});
  for (size_t k = 1; k < split; ++k) {
    const int64_t rows = left_[k - 1].size(0), columns = left_[k - 1].size(1);
    const int64_t r = shape_.ranks[k], m = shape_.in_modes[k], n = shape_.out_modes[k], after = shape_.ranks[k + 1];
    const Tensor product = ctx.temp({rows, columns, m, n, after}, "ttm product");
    ctx.ops.gemm(Mat(product, rows * columns, m * n * after), Mat(left_[k - 1], rows * columns, r), false,
                 Mat(effective_[k], r, m * n * after), false);
    left_[k] = ctx.temp({rows * m, columns * n, after}, "ttm left");
    ctx.ops.permute(left_[k].view({rows, m, columns, n, after}), product, {0, 2, 1, 3, 4});
  }
  p_ = left_.back();
}

// right_k (r, M, N): E_k (r m n, r') R_{k+1} (r', M N) = (r, m, n, M, N), which becomes (r, m M, n N), and for the last
// one Q (m M, r, n N).
void TTMEmbedding::merge_right(Ctx& ctx, size_t split) {
  const size_t cores = cores_.size();
  right_.reset(cores);
  right_[cores - 1] = effective_[cores - 1].view({shape_.ranks[cores - 1], shape_.in_modes[cores - 1], shape_.out_modes[cores - 1]});
  for (size_t k = cores - 1; k-- > split;) {
    const int64_t rows = right_[k + 1].size(1), columns = right_[k + 1].size(2);
    const int64_t r = shape_.ranks[k], m = shape_.in_modes[k], n = shape_.out_modes[k], after = shape_.ranks[k + 1];
    const Tensor product = ctx.temp({r, m, n, rows, columns}, "ttm product");
    ctx.ops.gemm(Mat(product, r * m * n, rows * columns), Mat(effective_[k], r * m * n, after), false,
                 Mat(right_[k + 1], after, rows * columns), false);
    const bool last = k == split;
    Tensor merged = ctx.temp(last ? Shape{m * rows, r, n * columns} : Shape{r, m * rows, n * columns}, last ? "ttm q" : "ttm right");
    if (last) {
      ctx.ops.permute(merged.view({m, rows, r, n, columns}), product, {1, 3, 0, 2, 4});
      q_ = merged;
    } else {
      ctx.ops.permute(merged.view({r, m, rows, n, columns}), product, {0, 1, 3, 2, 4});
      right_[k] = merged;
    }
  }
  if (split + 1 < cores) return;
  const Tensor& core = right_[split];
  q_ = ctx.temp({core.size(1), core.size(0), core.size(2)}, "ttm q");
  ctx.ops.permute(q_, core, {1, 0, 2});
}

void TTMEmbedding::mask(Ctx& ctx, TTCalls& calls) {
  const size_t cores = cores_.size();
  for (size_t k = 0; k + 1 < cores; ++k) shape_.ranks[k + 1] = cores_[k]->shape[-1];
  effective_.clear();
  core_grads_.clear();  // of a step that was broken off
  rank_grads_.clear();
  for (size_t k = 0; k + 1 < cores; ++k) {
    effective_.push_back(ctx.temp(core_shape(k), "ttm masked core"));
    calls.rank_mask(effective_[k], numbers_of(ctx, *cores_[k]), ranks_[k]->value);
  }
  effective_.push_back(numbers_of(ctx, *cores_.back()));
}

void TTMEmbedding::mask_gradients(Ctx& ctx, TTCalls& calls) {
  for (size_t k = 0; k < rank_grads_.size(); ++k)
    calls.rank_mask_backward(core_grads_[k], rank_grads_[k], core_grads_[k], numbers_of(ctx, *cores_[k]), ranks_[k]->value);
}

void TTMEmbedding::hand_over(Ctx& ctx) {
  for (size_t k = 0; k < rank_grads_.size(); ++k) grad_ready(ctx, *ranks_[k], std::exchange(rank_grads_[k], {}));
  for (size_t k = 0; k < core_grads_.size(); ++k) grad_ready(ctx, *cores_[k], std::exchange(core_grads_[k], {}));
  core_grads_.clear();
  rank_grads_.clear();
}

Tensor TTMEmbedding::forward(Ctx& ctx, Tensor ids) {
  if (!grouped_) {
    const TTCalls::Scope scope(calls_);
    mask(ctx, calls_);
    calls_.make(ctx);
  }
  const int64_t tokens = ids.size(0);
  const size_t split = ttm_split(shape_, tokens);
  merge_left(ctx, split);
  merge_right(ctx, split);
  Tensor y = ctx.temp({tokens, shape_.out}, "ttm y");
  ctx.ops.ttm_lookup(y, p_, q_, ids);
  if (ctx.keeps()) {
    ids_ = std::move(ids);
    ctx.stash.offer(y, *this);
  } else {
    if (!ctx.training || !grouped_) effective_.clear();  // else they serve the second pass, too
    left_.clear();
    right_.clear();
    p_ = q_ = {};
  }
  return y;
}

Tensor TTMEmbedding::remake(Ctx& ctx) {
  Tensor y = ctx.temp({ids_.size(0), shape_.out}, "ttm y again");
  ctx.ops.ttm_lookup(y, p_, q_, ids_);
  return y;
}

Tensor TTMEmbedding::backward(Ctx& ctx, Tensor dy, Tensor) {
  CHECK(ids_, "backward of a TTM table without its forward");
  const size_t split = left_.size();
  for (Param* core : cores_) core_grads_.push_back(grad_room(ctx, *core));
  // With one core in the left half dP is its gradient as it lies.
  Tensor dp = split == 1 ? core_grads_[0].view(p_.shape()) : ctx.temp(p_.shape(), "ttm dp");
  Tensor dq = ctx.temp(q_.shape(), "ttm dq");
  ctx.ops.ttm_lookup_backward(dp, dq, dy, p_, q_, ids_);
  dy = p_ = q_ = ids_ = {};
  left_.back() = {};
  unmerge_left(ctx, std::move(dp));
  unmerge_right(ctx, std::move(dq), split);
  effective_.clear();
  left_.clear();
  right_.clear();
  for (Param* rank : ranks_) rank_grads_.push_back(grad_room(ctx, *rank));
  if (!grouped_) {
    const TTCalls::Scope scope(calls_);
    mask_gradients(ctx, calls_);
    calls_.make(ctx);
    hand_over(ctx);
  }
  return {};
}

// dleft_k (M m, N n, r') back to (M N, m n r'): dE_k = L_{k-1}^T of it, dL_{k-1} = it E_k^T. What is left is dE_1.
void TTMEmbedding::unmerge_left(Ctx& ctx, Tensor dp) {
  for (size_t k = left_.size(); k-- > 1;) {
    const int64_t rows = left_[k - 1].size(0), columns = left_[k - 1].size(1);
    const int64_t r = shape_.ranks[k], m = shape_.in_modes[k], n = shape_.out_modes[k], after = shape_.ranks[k + 1];
    const Tensor product = ctx.temp({rows, columns, m, n, after}, "ttm dproduct");
    ctx.ops.permute(product, dp.view({rows, m, columns, n, after}), {0, 2, 1, 3, 4});
    const Mat slab(product, rows * columns, m * n * after);
    ctx.ops.gemm(Mat(core_grads_[k], r, m * n * after), Mat(left_[k - 1], rows * columns, r), true, slab, false);
    dp = k == 1 ? core_grads_[0].view({rows, columns, r}) : ctx.temp({rows, columns, r}, "ttm dleft");
    ctx.ops.gemm(Mat(dp, rows * columns, r), slab, false, Mat(effective_[k], r, m * n * after), true);
  }
}

// dright_k (r, m M, n N), first of all dQ (m M, r, n N), back to (r m n, M N): dE_k = it R_{k+1}^T, dR_{k+1} = E_k^T it.
// What is left is dE_K.
void TTMEmbedding::unmerge_right(Ctx& ctx, Tensor dq, size_t split) {
  const size_t cores = cores_.size();
  if (split + 1 == cores) {
    const int64_t r = dq.size(1), m = dq.size(0), n = dq.size(2);
    ctx.ops.permute(core_grads_[split].view({r, m, n}), dq, {1, 0, 2});
    return;
  }
  for (size_t k = split; k + 1 < cores; ++k) {
    const int64_t rows = right_[k + 1].size(1), columns = right_[k + 1].size(2);
    const int64_t r = shape_.ranks[k], m = shape_.in_modes[k], n = shape_.out_modes[k], after = shape_.ranks[k + 1];
    const Tensor product = ctx.temp({r, m, n, rows, columns}, "ttm dproduct");
    if (k == split) {
      ctx.ops.permute(product, dq.view({m, rows, r, n, columns}), {2, 0, 3, 1, 4});
    } else {
      ctx.ops.permute(product, dq.view({r, m, rows, n, columns}), {0, 1, 3, 2, 4});
    }
    const Mat slab(product, r * m * n, rows * columns);
    ctx.ops.gemm(Mat(core_grads_[k], r * m * n, after), slab, false, Mat(right_[k + 1], after, rows * columns), true);
    right_[k + 1] = {};
    dq = k + 2 == cores ? core_grads_[k + 1].view({after, rows, columns}) : ctx.temp({after, rows, columns}, "ttm dright");
    ctx.ops.gemm(Mat(dq, after, rows * columns), Mat(effective_[k], r * m * n, after), true, slab, false);
  }
}

}  // namespace comera
