#include <algorithm>

#include "core/base/rounding.h"
#include "core/layers/tt_linear.h"

namespace comera {

Tensor TTFan::edge(Ctx& ctx, int64_t height) {
  Tensor edge = ctx.temp({1 + height, kLine}, "edges of lefts");
  ctx.ops.fill(edge, 0);
  ctx.ops.fill(Mat(edge).top(1).columns(0, 1), 1);
  return edge;
}

int64_t TTFan::in() const { return layers_[0]->matrix_.shape.in; }
bool TTFan::has(const TTLinear& layer) const { return std::find(layers_.begin(), layers_.end(), &layer) != layers_.end(); }
bool TTFan::grouped() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const TTLinear* layer) { return layer->grouped_; });
}

int64_t TTFan::edge_height() const {
  int64_t height = in();
  each([&](size_t, int64_t, int64_t columns) { height = std::max(height, ceil_div(columns, kLine)); });
  return height;
}

void TTFan::join(Ctx& ctx, TTCalls& calls, const Tensor& edge) {
  const int64_t all = each([](size_t, int64_t, int64_t) {});
  left_ = ctx.temp({in(), all}, "tt lefts");
  ones_ = ctx.temp({all}, "tt ones");
  const Tensor zeros = edge.rows(1, edge.size(0) - 1);
  const Mat to_ones(ones_, 1, all), none(zeros, 1, zeros.count());
  each([&](size_t i, int64_t first, int64_t columns) {
    const int64_t rank = layers_[i]->matrix_.middle_rank(), rest = columns - rank;
    calls.copy(Mat(left_).columns(first, rank), Mat(layers_[i]->merged_.take_left()).top(in()));
    calls.copy(Mat(left_).columns(first + rank, rest), Mat(zeros).top(in()).columns(0, rest));
    calls.copy(to_ones.columns(first, rank), none.columns(0, rank));
    calls.copy(to_ones.columns(first + rank, rest), Mat(edge).top(1).columns(0, rest));
  });
}

void TTFan::open(Ctx& ctx) {
  if (grouped()) return;
  const TTCalls::Scope scope(calls_);
  TTMerged::merge_all(ctx, calls_, [&](const auto& body) { each_merged(body); });
  if (plain()) {
    left_ = layers_[0]->merged_.take_left();
  } else {
    join(ctx, calls_, edge(ctx, edge_height()));
    calls_.make(ctx);
  }
}

Tensor TTFan::enter(Ctx& ctx, Tensor x) {
  const StashSlot& slot = layers_[0]->input_.slot;
  input_ = {slot, ctx.keeps() ? ctx.stash.keep(ctx, slot, x, Use::product) : Kept{}};
  open(ctx);
  Tensor t1;
  if (plain()) {
    const int64_t rank = layers_[0]->matrix_.middle_rank();
    t1 = ctx.temp({x.size(0), rank + 1}, "tt x left");
    ctx.ops.gemm(Mat(t1).columns(0, rank), x, false, Mat(left_).top(in()), false);
    ctx.ops.fill(Mat(t1).columns(rank, 1), 1);
  } else {
    t1 = ctx.temp({x.size(0), left_.size(1)}, "tt x left");
    ctx.ops.linear(t1, x, left_, ones_, false);
  }
  return t1;
}

TensorList TTFan::leave(Ctx& ctx, Tensor t1) {
  TensorList y;
  each([&](size_t i, int64_t first, int64_t) {
    TTLinear& layer = *layers_[i];
    layer.merged_.hold(t1, first);
    y.push_back(layer.merged_.output(ctx, layer.matrix_));
    if (ctx.keeps()) ctx.stash.offer(y.back(), layer);
  });
  close(ctx);
  return y;
}

ThinProduct TTFan::leave_in_parts(Ctx& ctx, Tensor t1) {
  u1_ = {};  // of a step that was broken off
  TTLinear& layer = *layers_[0];
  layer.merged_.hold(std::move(t1), 0);
  const ThinProduct y{layer.merged_.input(), layer.merged_.right(layer.matrix_)};
  close(ctx);
  return y;
}

void TTFan::close(Ctx& ctx) {
  if (ctx.keeps()) {
    ones_ = {};
  } else if (ctx.training && grouped()) {  // the merged halves serve the second pass, too
    for (TTLinear* layer : layers_) layer->merged_.drop_input();
  } else {
    for (TTLinear* layer : layers_) layer->merged_.drop();
    left_ = ones_ = {};
  }
}

Tensor TTFan::backward(Ctx& ctx, TensorList dy, Tensor into) {
  Tensor u1 = turn(ctx, std::move(dy));
  return finish(ctx, std::move(u1), std::move(into));
}

op::NormBackward::Onward TTFan::begin_turn(Ctx& ctx, int64_t tokens) {
  CHECK(left_, "backward of a TT layer without its forward");
  u1_ = ctx.temp({tokens, left_.size(1)}, "tt u1");
  return {u1_, layers_[0]->merged_.right(layers_[0]->matrix_).top(left_.size(1))};
}

Tensor TTFan::turn(Ctx& ctx, TensorList dy) {
  const int64_t tokens = dy[0].size(0);
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->merged_.backward_cores(ctx, layers_[i]->matrix_, dy[i]);
  if (u1_) {
    layers_[0]->merged_.drop_right();
    return std::exchange(u1_, {});
  }
  Tensor u1 = ctx.temp({tokens, left_.size(1)}, "tt u1");
  each([&](size_t i, int64_t first, int64_t columns) {
    layers_[i]->merged_.backward_left(ctx, layers_[i]->matrix_, dy[i], Mat(u1).columns(first, columns));
    dy[i] = {};
  });
  return u1;
}

Mat TTFan::begin_left(Ctx& ctx) {
  v_ = plain() ? layers_[0]->merged_.left_gradient(ctx, layers_[0]->matrix_) : ctx.temp({in(), left_.size(1)}, "tt v");
  return Mat(v_).top(in());
}

void TTFan::make_left(Ctx& ctx, const Tensor& u1) {
  const Mat v = begin_left(ctx);
  const Tensor rows = rows_for(ctx, input_.kept, u1);
  ctx.ops.gemm(v, input_.take(ctx), true, rows, false);
}

ThinProduct TTFan::finish_in_parts(Ctx& ctx, Tensor u1) {
  make_left(ctx, u1);
  const ThinProduct dx{u1, Mat(left_).top(in()), true};  // dY b meets zeros
  end_left(ctx);
  return dx;
}

Tensor TTFan::finish(Ctx& ctx, Tensor u1, Tensor into) {
  make_left(ctx, u1);
  const double beta = into ? 1 : 0;
  Tensor dx = into ? std::move(into) : ctx.temp({u1.size(0), in()}, "tt dx");
  ctx.ops.gemm(dx, u1, false, Mat(left_).top(in()), true, 1, beta);  // dY b meets zeros
  u1 = {};
  end_left(ctx);
  return dx;
}

void TTFan::end_left(Ctx& ctx) {
  left_ = {};
  if (grouped()) return;
  const TTCalls::Scope scope(calls_);
  begin_sweeps(ctx, calls_);
  const auto each = [&](const auto& body) { each_merged(body); };
  TTMerged::sweep_all(ctx, calls_, each);
  TTMerged::hand_over_all(ctx, calls_, each);
}

void TTFan::begin_sweeps(Ctx& ctx, TTCalls& calls) {
  each([&](size_t i, int64_t first, int64_t) {
    const TTMatrix& matrix = layers_[i]->matrix_;
    Tensor v = plain() ? v_ : layers_[i]->merged_.left_gradient(ctx, matrix);
    if (!plain()) calls.copy(Mat(v).top(in()), Mat(v_).columns(first, matrix.middle_rank()));
    layers_[i]->merged_.begin_sweep(matrix, calls, std::move(v));
  });
  v_ = {};
}

void TTFan::drop() {
  input_.kept = {};
  left_ = ones_ = v_ = u1_ = {};
}

}  // namespace comera
