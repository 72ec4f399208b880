// The merged order (METHODS.md 1.1). Padding costs nothing here: products read the first I rows of L and the first O
// columns of R, which are the only ones that meet data.
#include "core/layers/tt_linear.h"

namespace comera {
namespace {

// Elements from row to row of T1. Rows padded to 32 or 40 floats (r = 30) were measured to be no faster: the products
// wait for x, y and their gradients, not for T1.
int64_t t1_width(int64_t rank) { return rank + 1; }

}  // namespace

void TTMerged::begin_merge(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) {
  drop();
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs();
  const int64_t rank = shape.ranks[p], width = shape.padded_out();
  effective_ = matrix.effective(ctx, calls);
  left_.reset(p);
  left_[0] = effective_[0].view({shape.in_modes[0], shape.ranks[1]});

  with_bias_ = ctx.temp({rank + 1, width}, "tt right and bias");
  right_.reset(q);
  right_[0] = with_bias_.rows(0, rank);
  if (q == 1)
    calls.copy(ctx, right_[0], effective_[p]);
  else
    right_[q - 1] = effective_[p + q - 1].view({shape.ranks[p + q - 1], shape.out_modes[q - 1]});
  calls.copy(ctx, with_bias_.rows(rank, 1).view({width}).rows(0, shape.out), matrix.bias->value);
}

// k = turn: L_k (n_1..n_k, r_k) = L_{k-1} (n_1..n_{k-1}, r_{k-1}) E_k (r_{k-1}, n_k r_k)
void TTMerged::merge_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const size_t k = turn;
  if (k >= matrix.inputs()) return;
  const TTShape& shape = matrix.shape;
  const int64_t rows = left_[k - 1].size(0), before = shape.ranks[k], mode = shape.in_modes[k], after = shape.ranks[k + 1];
  left_[k] = ctx.temp({rows * mode, after}, "tt left");
  calls.gemm(ctx, Mat(left_[k], rows, mode * after), left_[k - 1], false, Mat(effective_[k], before, mode * after), false);
}

// k = q - turn: R_k (r_{p+k-1} m_k, rest) = E_{p+k} (r_{p+k-1} m_k, r_{p+k}) R_{k+1} (r_{p+k}, rest)
void TTMerged::merge_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const size_t p = matrix.inputs(), q = matrix.outputs();
  if (turn >= q) return;
  const TTShape& shape = matrix.shape;
  const size_t k = q - 1 - turn;
  const int64_t before = shape.ranks[p + k], mode = shape.out_modes[k], after = shape.ranks[p + k + 1], rest = right_[k + 1].size(1);
  if (k > 0) right_[k] = ctx.temp({before, mode * rest}, "tt right");
  calls.gemm(ctx, Mat(right_[k], before * mode, rest), Mat(effective_[p + k], before * mode, after), false, right_[k + 1], false);
}

Tensor TTMerged::forward(Ctx& ctx, const TTMatrix& matrix, Tensor x) {
  const TTShape& shape = matrix.shape;
  const int64_t tokens = x.size(0), rank = shape.ranks[matrix.inputs()];
  t1_ = ctx.temp({tokens, t1_width(rank)}, "tt x left");
  ctx.ops.gemm(Mat(t1_).columns(0, rank), x, false, Mat(left_.back()).top(shape.in), false);
  ctx.ops.fill(Mat(t1_).columns(rank, 1), 1);
  x = {};
  Tensor y = ctx.temp({tokens, shape.out}, "tt y");
  ctx.ops.gemm(y, Mat(t1_).columns(0, rank + 1), false, Mat(with_bias_).columns(0, shape.out), false);
  return y;
}

Tensor TTMerged::backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into, TTCalls& calls, bool later) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs();
  const int64_t tokens = dy.size(0), rank = shape.ranks[p], height = shape.padded_in(), width = shape.padded_out();

  // T2 (r+1, M) = T1^T dY, whose last row is the gradient of the bias.
  Tensor t2 = ctx.temp({rank + 1, width}, "tt t2");
  ctx.ops.gemm(Mat(t2).columns(0, shape.out), Mat(t1_).columns(0, rank + 1), true, dy, false);
  if (width > shape.out) ctx.ops.fill(Mat(t2).columns(shape.out, width - shape.out), 0);
  t1_ = {};
  // U1 (T, r) = dY R^T
  Tensor u1 = ctx.temp({tokens, rank}, "tt u1");
  ctx.ops.gemm(u1, dy, false, Mat(with_bias_).top(rank).columns(0, shape.out), true);
  dy = {};
  with_bias_ = right_[0] = {};
  s_ = std::move(t2);
  if (!later) begin_sweep(ctx, matrix, calls);
  for (size_t turn = 1; !later && turn < q; ++turn) sweep_right(ctx, matrix, turn, calls);

  // V (N, r) = X^T U1, the only use of x; with one input mode it is dE_1 itself.
  v_ = p == 1 ? matrix.cores[0]->grad.view({height, rank}) : ctx.temp({height, rank}, "tt v");
  ctx.ops.gemm(Mat(v_).top(shape.in), input.take(ctx), true, u1, false);
  if (height > shape.in) ctx.ops.fill(v_.rows(shape.in, height - shape.in), 0);
  // dX (T, N) = U1 L^T
  const double beta = into ? 1 : 0;
  Tensor dx = into ? std::move(into) : ctx.temp({tokens, shape.in}, "tt dx");
  ctx.ops.gemm(dx, u1, false, Mat(left_.back()).top(shape.in), true, 1, beta);
  u1 = left_.back() = {};
  if (later) return dx;
  for (size_t turn = 1; turn < p; ++turn) sweep_left(ctx, matrix, turn, calls);
  end_sweep(ctx, matrix, calls);
  return dx;
}

// The last row of T2 is the gradient of the bias; the others are S.
void TTMerged::begin_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs();
  const int64_t rank = shape.ranks[p], width = shape.padded_out();
  calls.copy(ctx, matrix.bias->grad, s_.rows(rank, 1).view({width}).rows(0, shape.out));
  s_ = s_.rows(0, rank);
  if (matrix.outputs() > 1) return;
  calls.copy(ctx, matrix.cores[p]->grad, s_);
  s_ = {};
}

// S (r_p, m_1..m_q) loses one mode a turn: dE_{p+k} = S R_{k+1}^T, then S = E_{p+k}^T S. What is left is dE_K.
void TTMerged::sweep_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs(), k = turn - 1;
  if (turn >= q) return;
  const int64_t before = shape.ranks[p + k], mode = shape.out_modes[k], after = shape.ranks[p + k + 1], rest = s_.count() / (before * mode);
  const Mat slab(s_, before * mode, rest);
  calls.gemm(ctx, Mat(matrix.cores[p + k]->grad, before * mode, after), slab, false, right_[k + 1], true);
  Tensor next = turn + 1 == q ? matrix.cores[p + turn]->grad : ctx.temp({after, rest}, "tt s");
  calls.gemm(ctx, Mat(next, after, rest), Mat(effective_[p + k], before * mode, after), true, slab, false);
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
  calls.gemm(ctx, Mat(matrix.cores[k]->grad, before, columns), left_[k - 1], true, slab, false);
  Tensor next = k == 1 ? matrix.cores[0]->grad : ctx.temp({rows, before}, "tt v");
  calls.gemm(ctx, Mat(next, rows, before), slab, false, core, true);
  v_ = std::move(next);
}

void TTMerged::end_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls) {
  drop();
  matrix.mask_gradients(ctx, calls);
}

}  // namespace comera
