// The merged order (METHODS.md 1.1). Padding costs nothing here: products read the first I rows of L and the first O
// columns of R, which are the only ones that meet data.
#include <utility>

#include "core/layers/tt_linear.h"

namespace comera {

void TTMerged::begin_merge(Ctx& ctx, const TTMatrix& matrix, int64_t width, TTCalls& calls) {
  drop();
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs();
  const int64_t rank = matrix.middle_rank(), columns = shape.padded_out();
  effective_ = matrix.effective(ctx, calls);
  left_.reset(p);
  left_[0] = effective_[0].view({shape.in_modes[0], shape.ranks[1]});

  with_bias_ = ctx.temp({width, columns}, "tt right and bias");
  right_.reset(q);
  right_[0] = with_bias_.rows(0, rank);
  if (q == 1)
    calls.copy(right_[0], effective_[p]);
  else
    right_[q - 1] = effective_[p + q - 1].view({shape.ranks[p + q - 1], shape.out_modes[q - 1]});
  for (int64_t row = rank; row < width; ++row) calls.copy(with_bias_.rows(row, 1).view({columns}).rows(0, shape.out), matrix.bias->value);
}

// k = turn: L_k (n_1..n_k, r_k) = L_{k-1} (n_1..n_{k-1}, r_{k-1}) E_k (r_{k-1}, n_k r_k)
void TTMerged::merge_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const size_t k = turn;
  if (k >= matrix.inputs()) return;
  const TTShape& shape = matrix.shape;
  const int64_t rows = left_[k - 1].size(0), before = shape.ranks[k], mode = shape.in_modes[k], after = shape.ranks[k + 1];
  left_[k] = ctx.temp({rows * mode, after}, "tt left");
  calls.gemm(Mat(left_[k], rows, mode * after), left_[k - 1], false, Mat(effective_[k], before, mode * after), false);
}

// k = q - turn: R_k (r_{p+k-1} m_k, rest) = E_{p+k} (r_{p+k-1} m_k, r_{p+k}) R_{k+1} (r_{p+k}, rest)
void TTMerged::merge_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const size_t p = matrix.inputs(), q = matrix.outputs();
  if (turn >= q) return;
  const TTShape& shape = matrix.shape;
  const size_t k = q - 1 - turn;
  const int64_t before = shape.ranks[p + k], mode = shape.out_modes[k], after = shape.ranks[p + k + 1], rest = right_[k + 1].size(1);
  if (k > 0) right_[k] = ctx.temp({before, mode * rest}, "tt right");
  calls.gemm(Mat(right_[k], before * mode, rest), Mat(effective_[p + k], before * mode, after), false, right_[k + 1], false);
}

Tensor TTMerged::take_left() {
  Tensor left = std::move(left_.back());
  left_.back() = {};
  return left;
}

void TTMerged::hold(Tensor t1, int64_t first) {
  t1_ = std::move(t1);
  first_ = first;
}

Tensor TTMerged::output(Ctx& ctx, const TTMatrix& matrix) const {
  Tensor y = ctx.temp({t1_.size(0), matrix.shape.out}, "tt y");
  ctx.ops.gemm(y, input(), false, right(matrix), false);
  return y;
}

Mat TTMerged::begin_cores(Ctx& ctx, const TTMatrix& matrix) {
  const int64_t columns = matrix.shape.padded_out(), used = matrix.shape.out;
  gradients_.begin(ctx, matrix);
  s_ = ctx.temp({with_bias_.size(0), columns}, "tt t2");
  if (columns > used) ctx.ops.fill(Mat(s_).columns(used, columns - used), 0);
  return Mat(s_).columns(0, used);
}

void TTMerged::backward_cores(Ctx& ctx, const TTMatrix& matrix, const Tensor& dy) {
  ctx.ops.gemm(begin_cores(ctx, matrix), input(), true, dy, false);
  t1_ = {};
}

void TTMerged::backward_left(Ctx& ctx, const TTMatrix& matrix, const Tensor& dy, const Mat& u1) {
  ctx.ops.gemm(u1, dy, false, right(matrix).top(u1.cols), true);
  drop_right();
}

// The row of T2 behind S is the gradient of the bias.
void TTMerged::begin_sweep(const TTMatrix& matrix, TTCalls& calls, Tensor v) {
  const size_t p = matrix.inputs();
  const int64_t rank = matrix.middle_rank();
  v_ = std::move(v);
  calls.copy(gradients_.bias, s_.rows(rank, 1).view({s_.size(1)}).rows(0, matrix.shape.out));
  s_ = s_.rows(0, rank);
  if (matrix.outputs() > 1) return;
  calls.copy(gradients_.cores[p], s_);
  s_ = {};
}

// S (r_p, m_1..m_q) loses one mode a turn: dE_{p+k} = S R_{k+1}^T, then S = E_{p+k}^T S. What is left is dE_K.
void TTMerged::sweep_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs(), k = turn - 1;
  if (turn >= q) return;
  const int64_t before = shape.ranks[p + k], mode = shape.out_modes[k], after = shape.ranks[p + k + 1], rest = s_.count() / (before * mode);
  const Mat slab(s_, before * mode, rest);
  calls.gemm(Mat(gradients_.cores[p + k], before * mode, after), slab, false, right_[k + 1], true);
  Tensor next = turn + 1 == q ? gradients_.cores[p + turn] : ctx.temp({after, rest}, "tt s");
  calls.gemm(Mat(next, after, rest), Mat(effective_[p + k], before * mode, after), true, slab, false);
  right_[k + 1] = effective_[p + k] = {};
  s_ = std::move(next);
}

// V (n_1..n_p, r_p) loses its last mode a turn: dE_k = L_{k-1}^T V, then V = V E_k^T. What is left is dE_1.
void TTMerged::sweep_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  if (turn >= matrix.inputs()) return;
  const TTShape& shape = matrix.shape;
  const size_t k = matrix.inputs() - turn;
  const int64_t before = shape.ranks[k], columns = shape.in_modes[k] * shape.ranks[k + 1], rows = v_.count() / columns;
  const Mat slab(v_, rows, columns), core(effective_[k], before, columns);
  calls.gemm(Mat(gradients_.cores[k], before, columns), left_[k - 1], true, slab, false);
  Tensor next = k == 1 ? gradients_.cores[0] : ctx.temp({rows, before}, "tt v");
  calls.gemm(Mat(next, rows, before), slab, false, core, true);
  v_ = std::move(next);
}

void TTMerged::end_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) {
  TTGradients gradients = std::move(gradients_);
  drop();
  gradients_ = std::move(gradients);
  gradients_.mask(ctx, matrix, calls);
}

void TTMerged::hand_over(Ctx& ctx, const TTMatrix& matrix) { gradients_.hand_over(ctx, matrix); }

}  // namespace comera
