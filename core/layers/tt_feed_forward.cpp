#include <algorithm>
#include <array>
#include <utility>

#include "core/layers/tt_linear.h"

namespace comera {

TTFeedForward::TTFeedForward(TTFan& in, Activation kind, TTLinear& out, std::unique_ptr<Layer> apart)
    : apart_(std::move(apart)), in_(in), out_(out), kind_(kind) {
  CHECK(in.layers_.size() == 1 || in.layers_.size() == 2, in.layers_.size() << " layers into a feed-forward block");
}

bool TTFeedForward::merges(const Ctx& ctx, int64_t tokens) {
  out_.matrix_.read_ranks();
  for (TTLinear* layer : in_.layers_) layer->matrix_.read_ranks();
  return !out_.is_sequential(ctx, tokens) &&
         std::none_of(in_.layers_.begin(), in_.layers_.end(), [&](const TTLinear* layer) { return layer->is_sequential(ctx, tokens); });
}

Tensor TTFeedForward::forward(Ctx& ctx, Tensor x) {
  fused_ = merges(ctx, x.size(0));
  if (!fused_) return apart_->forward(ctx, std::move(x));
  return std::move(out_.alone_->leave(ctx, enter(ctx, std::move(x)))[0]);
}

InParts TTFeedForward::forward_in_parts(Ctx& ctx, Tensor x) {
  fused_ = merges(ctx, x.size(0));
  if (!fused_) return apart_->forward(ctx, std::move(x));
  return {{}, out_.alone_->leave_in_parts(ctx, enter(ctx, std::move(x)))};
}

Tensor TTFeedForward::enter(Ctx& ctx, Tensor x) {
  const int64_t tokens = x.size(0), rank = out_.matrix_.middle_rank();
  TTFan& out = *out_.alone_;
  {
    const Tensor t1 = in_.enter(ctx, std::move(x));
    in_.each([&](size_t i, int64_t first, int64_t) { in_.layers_[i]->merged_.hold(t1, first); });
  }
  out.open(ctx);
  Tensor t1;
  const Mat left = Mat(out.left_).top(out.in());
  const auto multiply = [&](const Mat& y, const Tensor& bias) {
    op::WaistActivation call{kind_, y, input(0), right(0), left, bias};
    if (is_gated()) call.gate = {input(1), right(1)};
    ctx.ops.run(call);
  };
  if (out.plain()) {
    t1 = ctx.temp({tokens, rank + 1}, "tt x left");
    multiply(Mat(t1).columns(0, rank), {});
    ctx.ops.fill(Mat(t1).columns(rank, 1), 1);
  } else {
    t1 = ctx.temp({tokens, left.cols}, "tt x left");
    multiply(t1, out.ones_);
  }
  in_.close(ctx);
  return t1;
}

Tensor TTFeedForward::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (!fused_) return apart_->backward(ctx, std::move(dy), std::move(into));
  return in_.finish(ctx, turn(ctx, std::move(dy)), std::move(into));
}

InParts TTFeedForward::backward_in_parts(Ctx& ctx, InParts dy, Tensor into) {
  if (!fused_) return backward(ctx, sum_of_parts(ctx, std::move(dy)), std::move(into));
  return {std::move(into), in_.finish_in_parts(ctx, turn(ctx, sum_of_parts(ctx, std::move(dy))))};
}

Tensor TTFeedForward::turn(Ctx& ctx, Tensor dy) {
  TTFan& out = *out_.alone_;
  CHECK(in_.waits(), "backward of a feed-forward block without its forward");
  TensorList gradients;
  gradients.push_back(std::move(dy));
  Tensor u1_of_out = out.turn(ctx, std::move(gradients));
  Tensor u1 = ctx.temp({u1_of_out.size(0), in_.left_.size(1)}, "tt u1");
  std::array<int64_t, 2> firsts = {}, columns = {};
  in_.each([&](size_t i, int64_t first, int64_t count) { firsts[i] = first, columns[i] = count; });
  const auto of_input = [&](size_t i) { return Mat(u1).columns(firsts[i], columns[i]); };
  const auto of_cores = [&](size_t i) { return in_.layers_[i]->merged_.begin_cores(ctx, in_.layers_[i]->matrix_); };
  {
    const Mat t2 = of_cores(0);
    op::WaistActivationBackward call{kind_,     of_input(0), t2,       out.begin_left(ctx),
                                     u1_of_out, input(0),    right(0), Mat(out.left_).top(out.in())};
    if (is_gated()) call.gate = {of_input(1), of_cores(1), input(1), right(1)};
    ctx.ops.run(call);
  }
  u1_of_out = {};
  for (TTLinear* layer : in_.layers_) {
    layer->merged_.drop_input();
    layer->merged_.drop_right();
  }
  out.end_left(ctx);
  return u1;
}

}  // namespace comera
