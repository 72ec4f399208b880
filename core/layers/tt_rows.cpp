#include <utility>

#include "core/layers/tt_linear.h"

namespace comera {

TTRows::TTRows(std::unique_ptr<TTLinear> head) : head_(std::move(head)), matrix_(head_->matrix_) {
  for (Param* core : matrix_.cores) ++core->uses;
  for (Param* rank : matrix_.ranks) ++rank->uses;
  ++matrix_.bias->uses;
}

void TTRows::merge(Ctx& ctx, int64_t width) {
  const TTCalls::Scope scope(calls_);
  TTMerged::merge_all(ctx, calls_, [&](const auto& body) { body(merged_, matrix_, width); });
}

Tensor TTRows::forward(Ctx& ctx, Tensor ids) {
  matrix_.read_ranks();
  const int64_t tokens = ids.size(0), rank = matrix_.middle_rank();
  merge(ctx, rank);
  const Tensor left = merged_.take_left();
  const Tensor table = ctx.temp({matrix_.shape.padded_out(), rank}, "tt rows");
  ctx.ops.permute(table, merged_.whole_right(), {1, 0});
  merged_.drop();  // made again in backward, which takes less than keeping it
  rows_ = ctx.temp({tokens, rank}, "tt rows of ids");
  ctx.ops.gather_rows(rows_, table, ids, false);
  Tensor y = ctx.temp({tokens, matrix_.shape.in}, "tt rows y");
  ctx.ops.gemm(y, rows_, false, Mat(left).top(matrix_.shape.in), true);
  if (ctx.keeps())
    ids_ = std::move(ids);
  else
    rows_ = {};
  return y;
}

// The row of T2 under that of R is the gradient of the bias, which no embedding has.
Tensor TTRows::backward(Ctx& ctx, Tensor dy, Tensor) {
  CHECK(ids_, "backward of a tied tensor train without its forward");
  const int64_t rank = matrix_.middle_rank();
  merge(ctx, rank + 1);
  const Tensor left = merged_.take_left();
  merged_.begin_cores(ctx, matrix_);
  {
    const Tensor drows = ctx.temp({dy.size(0), rank}, "tt rows dy left");
    ctx.ops.gemm(drows, dy, false, Mat(left).top(matrix_.shape.in), false);
    const Tensor dtable = ctx.temp({matrix_.shape.padded_out(), rank}, "tt rows gradient");
    ctx.ops.scatter_rows(dtable, drows, std::exchange(ids_, {}));
    ctx.ops.permute(merged_.whole_cores().rows(0, rank), dtable, {1, 0});
  }
  ctx.ops.fill(merged_.whole_cores().rows(rank, 1), 0);
  merged_.drop_right();
  Tensor v = merged_.left_gradient(ctx, matrix_);
  ctx.ops.gemm(Mat(v).top(matrix_.shape.in), dy, true, std::exchange(rows_, {}), false);
  const TTCalls::Scope scope(calls_);
  const auto alone = [&](const auto& body) { body(merged_, matrix_, rank + 1); };
  merged_.begin_sweep(matrix_, calls_, std::move(v));
  TTMerged::sweep_all(ctx, calls_, alone);
  TTMerged::hand_over_all(ctx, calls_, alone);
  return {};
}

}  // namespace comera
