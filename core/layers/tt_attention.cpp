// Attention in the space of ranks (METHODS.md 12.6): heads of queries, keys, values and of what attention makes of them are never made.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/layers/tt_linear.h"

namespace comera {

TTAttention::TTAttention(TTFan& in, TTLinear& out, const HeadSizes& sizes) : in_(in), out_(out), sizes_(sizes) {
  CHECK(in.layers_.size() == 3 && sizes.heads % sizes.key_heads == 0, sizes.heads << " heads, " << sizes.key_heads << " of keys");
  products_.reserve(static_cast<size_t>(2 * sizes.key_heads));
}

// The op divides products of queries and keys by the root of the width that they have there.
double TTAttention::scale() const { return std::sqrt(static_cast<double>(width_) / static_cast<double>(sizes_.width)); }

bool TTAttention::begin(int64_t tokens) {
  width_ = 0;
  bool merged = !out_.is_sequential(tokens);
  for (TTLinear* layer : in_.layers_) {
    layer->matrix_.read_ranks();
    width_ = std::max(width_, TTFan::width(layer->matrix_.middle_rank()));
    merged &= !layer->is_sequential(tokens);
  }
  out_.matrix_.read_ranks();
  return merged && width_ < sizes_.width;
}

Mat TTAttention::right(size_t i, int64_t head) const {
  TTLinear& layer = *in_.layers_[i];
  return layer.merged_.right(layer.matrix_).columns(head * sizes_.width, sizes_.width);
}

// body(head, its head of keys) for all heads: first for one of each group of heads that share keys, then for the next ones. So what a
// group adds to is written in one order, and products of a turn can be made at once.
template <class Body>
void TTAttention::each_head(Ctx& ctx, const Body& body) {
  const int64_t group = sizes_.heads / sizes_.key_heads;
  for (int64_t member = 0; member < group; ++member) {
    products_.clear();
    for (int64_t key = 0; key < sizes_.key_heads; ++key) body(key * group + member, key, member == 0 ? 0.0 : 1.0);
    ctx.ops.gemm(products_);
  }
  products_.clear();
}

// Keys and values are T1 of k and v. Queries of a head are T1 of q times Rq Rk^T.
TensorList TTAttention::thin(Ctx& ctx) {
  const Mat of_q = in_.layers_[0]->merged_.input(), of_k = in_.layers_[1]->merged_.input(), of_v = in_.layers_[2]->merged_.input();
  const int64_t tokens = of_q.rows;
  if (!between_) {
    between_ = ctx.temp({of_q.cols, sizes_.heads * width_}, "tt queries to keys");
    if (of_k.cols < width_) ctx.ops.fill(between_, 0);
    each_head(ctx, [&](int64_t head, int64_t key, double) {
      products_.push_back({Mat(between_).columns(head * width_, of_k.cols), right(0, head), false, right(1, key), true, scale()});
    });
  }
  Tensor queries = ctx.temp({tokens, sizes_.heads * width_}, "queries"), keys = ctx.temp({tokens, width_}, "keys"),
         values = ctx.temp({tokens, width_}, "values");
  ctx.ops.gemm(queries, of_q, false, between_, false);
  if (of_k.cols < width_) ctx.ops.fill(keys, 0);
  if (of_v.cols < width_) ctx.ops.fill(values, 0);
  const CopyArgs copies[] = {{Mat(keys).columns(0, of_k.cols), of_k}, {Mat(values).columns(0, of_v.cols), of_v}};
  ctx.ops.copy(copies);
  TensorList made;
  for (Tensor* tensor : {&queries, &keys, &values}) made.push_back(std::move(*tensor));
  return made;
}

TensorList TTAttention::enter(Ctx& ctx, Tensor x) {
  mean_ = between_ = absorbed_ = {};  // of a step that was broken off
  const Tensor t1 = in_.enter(ctx, std::move(x));
  in_.each([&](size_t i, int64_t first, int64_t) { in_.layers_[i]->merged_.hold(t1, first); });
  TensorList made = thin(ctx);
  if (!ctx.keeps()) between_ = {};
  return made;
}

// The output's T1 = sum over heads of mean (Rv Lo), with the rows of L that the head meets.
Tensor TTAttention::leave(Ctx& ctx, Tensor mean) {
  TTFan& out = *out_.alone_;
  out.open(ctx);
  const int64_t columns = out.left_.size(1);
  absorbed_ = ctx.temp({sizes_.heads * width_, columns}, "tt values to output");
  const int64_t height = in_.layers_[2]->merged_.input().cols;
  if (height < width_) ctx.ops.fill(absorbed_, 0);
  each_head(ctx, [&](int64_t head, int64_t key, double) {
    products_.push_back({Mat(absorbed_).row_range(head * width_, height), right(2, key), false,
                         Mat(out.left_).row_range(head * sizes_.width, sizes_.width), false});
  });
  in_.close(ctx);
  Tensor t1 = ctx.temp({mean.size(0), out.plain() ? columns + 1 : columns}, "tt x left");
  if (out.plain()) {
    ctx.ops.gemm(Mat(t1).columns(0, columns), mean, false, absorbed_, false);
    ctx.ops.fill(Mat(t1).columns(columns, 1), 1);
  } else {
    ctx.ops.linear(t1, mean, absorbed_, out.ones_, false);
  }
  if (ctx.keeps())
    mean_ = std::move(mean);
  else
    absorbed_ = {};
  return std::move(out.leave(ctx, std::move(t1))[0]);
}

Tensor TTAttention::turn(Ctx& ctx, Tensor dy) {
  CHECK(mean_, "backward of attention without its forward");
  TTFan& out = *out_.alone_;
  TensorList gradients;
  gradients.push_back(std::move(dy));
  const Tensor u1 = out.turn(ctx, std::move(gradients));
  Tensor dmean = ctx.temp(mean_.shape(), "dattention");
  ctx.ops.gemm(dmean, u1, false, absorbed_, true);
  // absorbed_ has served: its gradient takes its place.
  ctx.ops.gemm(absorbed_, mean_, true, u1, false);
  mean_ = {};
  TTLinear& values = *in_.layers_[2];
  const Mat t2 = values.merged_.begin_cores(ctx, values.matrix_), v = out.begin_left(ctx);
  each_head(ctx, [&](int64_t head, int64_t key, double add) {
    const Mat from = Mat(absorbed_).row_range(head * width_, t2.rows);
    const int64_t first = head * sizes_.width;
    products_.push_back(
        {t2.columns(key * sizes_.width, sizes_.width), from, false, Mat(out.left_).row_range(first, sizes_.width), true, 1, add});
    products_.push_back({v.row_range(first, sizes_.width), right(2, key), true, from, false});
  });
  absorbed_ = {};
  out.end_left(ctx);
  return dmean;
}

Tensor TTAttention::finish(Ctx& ctx, TensorList gradients, Tensor into) {
  Tensor u1 = ctx.temp({gradients[0].size(0), in_.left_.size(1)}, "tt u1");
  std::array<int64_t, 3> firsts = {};
  in_.each([&](size_t i, int64_t first, int64_t) { firsts[i] = first; });
  const auto columns = [&](size_t i) { return in_.layers_[i]->merged_.input().cols; };
  const auto part = [&](size_t i) { return Mat(u1).columns(firsts[i], columns(i)); };
  ctx.ops.gemm(part(0), gradients[0], false, between_, true);
  const CopyArgs copies[] = {{part(1), Mat(gradients[1]).columns(0, columns(1))}, {part(2), Mat(gradients[2]).columns(0, columns(2))}};
  ctx.ops.copy(copies);
  TTLinear &queries = *in_.layers_[0], &keys = *in_.layers_[1];
  // between_ has served: its gradient takes its place.
  ctx.ops.gemm(between_, queries.merged_.input(), true, gradients[0], false);
  gradients.clear();
  const Mat of_queries = queries.merged_.begin_cores(ctx, queries.matrix_), of_keys = keys.merged_.begin_cores(ctx, keys.matrix_);
  each_head(ctx, [&](int64_t head, int64_t key, double add) {
    const Mat from = Mat(between_).columns(head * width_, of_keys.rows);
    const int64_t at = head * sizes_.width, at_key = key * sizes_.width;
    products_.push_back({of_queries.columns(at, sizes_.width), from, false, right(1, key), false, scale()});
    products_.push_back({of_keys.columns(at_key, sizes_.width), from, true, right(0, head), false, scale(), add});
  });
  between_ = {};
  for (TTLinear* layer : in_.layers_) {
    layer->merged_.drop_input();
    layer->merged_.drop_right();
  }
  return in_.finish(ctx, std::move(u1), std::move(into));
}

}  // namespace comera
