#include <utility>

#include "core/layers/tt_linear.h"

namespace comera {

TTFeedForward::TTFeedForward(std::unique_ptr<Layer> in, Activation kind, std::unique_ptr<Layer> activation, std::unique_ptr<Layer> out)
    : first_(std::move(in)),
      between_(std::move(activation)),
      last_(std::move(out)),
      in_(static_cast<TTLinear&>(*first_)),
      out_(static_cast<TTLinear&>(*last_)),
      kind_(kind) {}

Tensor TTFeedForward::forward(Ctx& ctx, Tensor x) {
  in_.matrix_.read_ranks();
  out_.matrix_.read_ranks();
  const int64_t tokens = x.size(0), rank = out_.matrix_.middle_rank();
  fused_ = !in_.is_sequential(tokens) && !out_.is_sequential(tokens);
  if (!fused_) return last_->forward(ctx, between_->forward(ctx, first_->forward(ctx, std::move(x))));
  TTFan &in = *in_.alone_, &out = *out_.alone_;
  in_.merged_.hold(in.enter(ctx, std::move(x)), 0);
  out.open(ctx);
  Tensor t1;
  const Mat left = Mat(out.left_).top(out.in());
  if (out.plain()) {
    t1 = ctx.temp({tokens, rank + 1}, "tt x left");
    ctx.ops.run(op::WaistActivation{kind_, Mat(t1).columns(0, rank), in_.merged_.input(), in_.merged_.right(in_.matrix_), left, {}});
    ctx.ops.fill(Mat(t1).columns(rank, 1), 1);
  } else {
    t1 = ctx.temp({tokens, left.cols}, "tt x left");
    ctx.ops.run(op::WaistActivation{kind_, t1, in_.merged_.input(), in_.merged_.right(in_.matrix_), left, out.ones_});
  }
  in.close(ctx);
  return std::move(out.leave(ctx, std::move(t1))[0]);
}

Tensor TTFeedForward::backward(Ctx& ctx, Tensor dy, Tensor into) {
  if (!fused_) return first_->backward(ctx, between_->backward(ctx, last_->backward(ctx, std::move(dy))), std::move(into));
  TTFan &in = *in_.alone_, &out = *out_.alone_;
  CHECK(in.waits(), "backward of a feed-forward block without its forward");
  TensorList gradients;
  gradients.push_back(std::move(dy));
  Tensor u1_of_out = out.turn(ctx, std::move(gradients));
  Tensor u1 = ctx.temp({u1_of_out.size(0), in.left_.size(1)}, "tt u1");
  const Mat t2 = in_.merged_.begin_cores(ctx, in_.matrix_), v = out.begin_left(ctx);
  ctx.ops.run(op::WaistActivationBackward{kind_, u1, t2, v, u1_of_out, in_.merged_.input(), in_.merged_.right(in_.matrix_),
                                          Mat(out.left_).top(out.in())});
  u1_of_out = {};
  in_.merged_.drop_input();
  in_.merged_.drop_right();
  out.end_left(ctx);
  return in.finish(ctx, std::move(u1), std::move(into));
}

}  // namespace comera
