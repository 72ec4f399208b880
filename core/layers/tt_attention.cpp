// Attention in the space of ranks (METHODS.md 12.6): heads of values and of what attention makes of them are never made; nor are heads of
// queries and keys, unless rotary positions turn them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/layers/tt_linear.h"

namespace comera {

TTAttention::TTAttention(TTFan& in, TTLinear& out, const HeadSizes& sizes) : in_(in), out_(out), sizes_(sizes) {
  CHECK(in.layers_.size() == 3 && sizes.heads % sizes.key_heads == 0, sizes.heads << " heads, " << sizes.key_heads << " of keys");
}

// The op divides products of queries and keys by the root of the width that they have there.
double TTAttention::scale() const { return std::sqrt(static_cast<double>(width_) / static_cast<double>(sizes_.width)); }

bool TTAttention::is_narrower() {
  width_ = 0;
  for (size_t i = 0; i < in_.layers_.size(); ++i) {
    TTMatrix& matrix = in_.layers_[i]->matrix_;
    matrix.read_ranks();
    if (!sizes_.turned || i == 2) width_ = std::max(width_, TTFan::width(matrix.middle_rank()));
  }
  out_.matrix_.read_ranks();
  return width_ < sizes_.width;
}

bool TTAttention::begin(const Ctx& ctx, int64_t tokens) {
  const bool narrower = is_narrower();
  return narrower && !out_.is_sequential(ctx, tokens) &&
         std::none_of(in_.layers_.begin(), in_.layers_.end(), [&](const TTLinear* layer) { return layer->is_sequential(ctx, tokens); });
}

Mat TTAttention::right(size_t i, int64_t head) const {
  TTLinear& layer = *in_.layers_[i];
  return layer.merged_.right(layer.matrix_).columns(head * sizes_.width, sizes_.width);
}

int64_t TTAttention::columns(size_t i) const { return right(i, 0).rows; }

// Calls body(head, its head of keys, beta) for member `member` of each group of heads that share keys. beta is 0 for the first member and 1
// for the others, which add to its product. So sums have one order, and the products of one member can be made at once.
template <class Body>
void TTAttention::each_key_head(size_t member, const Body& body) const {
  const int64_t group = sizes_.heads / sizes_.key_heads, at = static_cast<int64_t>(member);
  for (int64_t key = 0; key < sizes_.key_heads; ++key) body(key * group + at, key, member == 0 ? 0.0 : 1.0);
}

// Calls body(member) for each member of a group and makes the products of each in one call.
template <class Body>
void TTAttention::together(Ctx& ctx, const Body& body) {
  const TTCalls::Scope scope(calls_);
  for (size_t member = 0; member < static_cast<size_t>(sizes_.heads / sizes_.key_heads); ++member) {
    body(member);
    calls_.make(ctx);
  }
}

void TTAttention::make_between(Ctx& ctx, size_t member, TTCalls& calls) {
  if (member == 0) {
    between_ = ctx.temp({columns(0), sizes_.heads * width_}, "tt queries to keys");
    if (columns(1) < width_) ctx.ops.fill(between_, 0);
  }
  each_key_head(member, [&](int64_t head, int64_t key, double) {
    calls.gemm(Mat(between_).columns(head * width_, columns(1)), right(0, head), false, right(1, key), true, scale());
  });
}

// With the rows of L that the head meets.
void TTAttention::make_absorbed(Ctx& ctx, size_t member, TTCalls& calls) {
  const TTFan& out = *out_.alone_;
  if (member == 0) {
    absorbed_ = ctx.temp({sizes_.heads * width_, out.left_.size(1)}, "tt values to output");
    if (columns(2) < width_) ctx.ops.fill(absorbed_, 0);
  }
  each_key_head(member, [&](int64_t head, int64_t key, double) {
    calls.gemm(Mat(absorbed_).row_range(head * width_, columns(2)), right(2, key), false,
               Mat(out.left_).row_range(head * sizes_.width, sizes_.width), false);
  });
}

// T2 of the values and V of the output, from the gradient of absorbed_.
void TTAttention::absorbed_back(Ctx& ctx, size_t member, TTCalls& calls) {
  TTFan& out = *out_.alone_;
  TTLinear& values = *in_.layers_[2];
  if (member == 0) {
    values.merged_.begin_cores(ctx, values.matrix_);
    out.begin_left(ctx);
  }
  const Mat t2 = values.merged_.cores(values.matrix_), v = Mat(out.v_).top(out.in());
  each_key_head(member, [&](int64_t head, int64_t key, double add) {
    const Mat from = Mat(absorbed_).row_range(head * width_, t2.rows);
    const int64_t first = head * sizes_.width;
    calls.gemm(t2.columns(key * sizes_.width, sizes_.width), from, false, Mat(out.left_).row_range(first, sizes_.width), true, 1, add);
    calls.gemm(v.row_range(first, sizes_.width), right(2, key), true, from, false);
  });
}

// T2 of queries and keys, from the gradient of between_.
void TTAttention::between_back(Ctx& ctx, size_t member, TTCalls& calls) {
  TTLinear &queries = *in_.layers_[0], &keys = *in_.layers_[1];
  if (member == 0) {
    queries.merged_.begin_cores(ctx, queries.matrix_);
    keys.merged_.begin_cores(ctx, keys.matrix_);
  }
  const Mat of_queries = queries.merged_.cores(queries.matrix_), of_keys = keys.merged_.cores(keys.matrix_);
  each_key_head(member, [&](int64_t head, int64_t key, double add) {
    const Mat from = Mat(between_).columns(head * width_, of_keys.rows);
    const int64_t at = head * sizes_.width, at_key = key * sizes_.width;
    calls.gemm(of_queries.columns(at, sizes_.width), from, false, right(1, key), false, scale());
    calls.gemm(of_keys.columns(at_key, sizes_.width), from, true, right(0, head), false, scale(), add);
  });
}

void TTAttention::join(Ctx& ctx, TTCalls& calls) {
  mean_ = u1_ = between_ = absorbed_ = {};  // of a step that was broken off
  grouped_ = in_.grouped() && out_.grouped_ && is_narrower();
  for (size_t member = 0; member < turns(); ++member) {  // none of them adds
    if (!sizes_.turned) make_between(ctx, member, calls);
    make_absorbed(ctx, member, calls);
  }
}

void TTAttention::pass_back(Ctx& ctx, size_t turn, TTCalls& calls) {
  if (turn >= turns()) return;
  absorbed_back(ctx, turn, calls);
  if (!sizes_.turned) between_back(ctx, turn, calls);
}

void TTAttention::end(Ctx& ctx) {
  if (!grouped_) return;
  between_ = absorbed_ = {};
  out_.alone_->end_left(ctx);
  for (TTLinear* layer : in_.layers_) layer->merged_.drop_right();
}

// Keys and values are T1 of k and v, where that is narrower than w with zeros behind. Queries of a head are T1 of q times Rq Rk^T.
// Queries and keys that will be turned are whole.
ThinAttention::Heads TTAttention::thin(Ctx& ctx) {
  if (sizes_.turned) return {whole(ctx, 0), whole(ctx, 1), in_.layers_[2]->merged_.input()};
  const Mat of_q = in_.layers_[0]->merged_.input(), of_k = in_.layers_[1]->merged_.input(), of_v = in_.layers_[2]->merged_.input();
  const int64_t tokens = of_q.rows;
  if (!between_) together(ctx, [&](size_t member) { make_between(ctx, member, calls_); });
  Tensor queries = ctx.temp({tokens, sizes_.heads * width_}, "queries");
  ctx.ops.gemm(queries, of_q, false, between_, false);
  if (even()) return {std::move(queries), of_k, of_v};
  const Tensor keys = ctx.temp({tokens, width_}, "keys"), values = ctx.temp({tokens, width_}, "values");
  if (of_k.cols < width_) ctx.ops.fill(keys, 0);
  if (of_v.cols < width_) ctx.ops.fill(values, 0);
  const CopyArgs copies[] = {{Mat(keys).columns(0, of_k.cols), of_k}, {Mat(values).columns(0, of_v.cols), of_v}};
  ctx.ops.copy(copies);
  return {std::move(queries), keys, values};
}

Tensor TTAttention::whole(Ctx& ctx, size_t i) const { return in_.layers_[i]->merged_.output(ctx, in_.layers_[i]->matrix_); }

ThinAttention::Heads TTAttention::enter(Ctx& ctx, Tensor x) {
  mean_ = u1_ = {};  // of a step that was broken off
  if (!grouped_) between_ = absorbed_ = {};
  const Tensor t1 = in_.enter(ctx, std::move(x));
  in_.each([&](size_t i, int64_t first, int64_t) { in_.layers_[i]->merged_.hold(t1, first); });
  Heads made = thin(ctx);
  if (!stays(ctx)) between_ = {};
  return made;
}

Tensor TTAttention::leave(Ctx& ctx, Tensor mean) { return std::move(out_.alone_->leave(ctx, output_t1(ctx, std::move(mean)))[0]); }
ThinProduct TTAttention::leave_in_parts(Ctx& ctx, Tensor mean) { return out_.alone_->leave_in_parts(ctx, output_t1(ctx, std::move(mean))); }

// The output's T1 = sum over heads of mean (Rv Lo).
Tensor TTAttention::output_t1(Ctx& ctx, Tensor mean) {
  TTFan& out = *out_.alone_;
  out.open(ctx);
  const int64_t columns = out.left_.size(1);
  if (!absorbed_) together(ctx, [&](size_t member) { make_absorbed(ctx, member, calls_); });
  in_.close(ctx);
  Tensor t1 = ctx.temp({mean.size(0), out.plain() ? columns + 1 : columns}, "tt x left");
  if (out.plain()) {
    ctx.ops.gemm(Mat(t1).columns(0, columns), mean, false, absorbed_, false);
    ctx.ops.fill(Mat(t1).columns(columns, 1), 1);
  } else {
    ctx.ops.linear(t1, mean, absorbed_, out.ones_, false);
  }
  if (ctx.keeps()) mean_ = std::move(mean);
  if (!stays(ctx)) absorbed_ = {};
  return t1;
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
  if (!grouped_) {
    together(ctx, [&](size_t member) { absorbed_back(ctx, member, calls_); });
    absorbed_ = {};
    out.end_left(ctx);
  }
  return dmean;
}

Mat TTAttention::of_u1(size_t i) const {
  int64_t at = 0;
  in_.each([&](size_t each, int64_t first, int64_t) { at = each == i ? first : at; });
  return Mat(u1_).columns(at, columns(i));
}

// Where keys and values are columns of T1, their gradients are columns of U1, which finish() needs.
ThinAttention::Heads TTAttention::gradients(Ctx& ctx) {
  const int64_t tokens = in_.layers_[0]->merged_.input().rows;
  u1_ = ctx.temp({tokens, in_.left_.size(1)}, "tt u1");
  if (sizes_.turned) {
    const int64_t of_queries = sizes_.heads * sizes_.width, of_keys = sizes_.key_heads * sizes_.width;
    return {ctx.temp({tokens, of_queries}, "dqueries"), ctx.temp({tokens, of_keys}, "dkeys"), of_u1(2)};
  }
  Tensor queries = ctx.temp({tokens, sizes_.heads * width_}, "dqueries");
  if (even()) return {std::move(queries), of_u1(1), of_u1(2)};
  return {std::move(queries), ctx.temp({tokens, width_}, "dkeys"), ctx.temp({tokens, width_}, "dvalues")};
}

Tensor TTAttention::finish(Ctx& ctx, Heads gradients, Tensor into) {
  return in_.finish(ctx, input_u1(ctx, std::move(gradients)), std::move(into));
}
ThinProduct TTAttention::finish_in_parts(Ctx& ctx, Heads gradients) {
  return in_.finish_in_parts(ctx, input_u1(ctx, std::move(gradients)));
}

Tensor TTAttention::input_u1(Ctx& ctx, Heads gradients) {
  sizes_.turned ? whole_back(ctx, std::move(gradients)) : thin_back(ctx, std::move(gradients));
  if (between_ && !grouped_) {
    together(ctx, [&](size_t member) { between_back(ctx, member, calls_); });
    between_ = {};
  }
  for (TTLinear* layer : in_.layers_) {
    layer->merged_.drop_input();
    if (!grouped_) layer->merged_.drop_right();
  }
  return std::exchange(u1_, {});
}

void TTAttention::whole_back(Ctx& ctx, Heads gradients) {
  const auto back = [&](size_t i, const Tensor& of) {
    TTLinear& layer = *in_.layers_[i];
    layer.merged_.backward_cores(ctx, layer.matrix_, of);
    layer.merged_.backward_left(ctx, layer.matrix_, of, of_u1(i));
  };
  back(0, gradients.queries);
  gradients.queries = {};
  back(1, gradients.keys.tensor);
}

void TTAttention::thin_back(Ctx& ctx, Heads gradients) {
  ctx.ops.gemm(of_u1(0), gradients.queries, false, between_, true);
  if (!even()) {
    const CopyArgs copies[] = {{of_u1(1), gradients.keys.columns(0, columns(1))}, {of_u1(2), gradients.values.columns(0, columns(2))}};
    ctx.ops.copy(copies);
  }
  // between_ has served: its gradient takes its place.
  ctx.ops.gemm(between_, in_.layers_[0]->merged_.input(), true, gradients.queries, false);
}

}  // namespace comera
