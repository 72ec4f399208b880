// The sequential order (METHODS.md 1.1). On the input side tokens are the last index and on the output side the first,
// so that every contraction is one plain product over all tokens.
#include "core/layers/tt_linear.h"

namespace comera {
namespace {

// x^T (N, T) of x (T, I); rows past I are zero.
Tensor transposed(Ctx& ctx, const Tensor& x, int64_t rows) {
  const int64_t tokens = x.size(0), used = x.size(1);
  Tensor out = ctx.temp({rows, tokens}, "tt transposed");
  ctx.ops.permute(out.rows(0, used), x, {1, 0});
  if (rows > used) ctx.ops.fill(out.rows(used, rows - used), 0);
  return out;
}

// The first `columns` columns of x^T, for x (N, T): (T, columns).
Tensor transposed_top(Ctx& ctx, const Tensor& x, int64_t columns) {
  Tensor out = ctx.temp({x.size(1), columns}, "tt transposed");
  ctx.ops.permute(out, x.rows(0, columns), {1, 0});
  return out;
}

// The bias as a row (M): itself, or followed by zeros where the modes are padded.
Tensor bias_row(Ctx& ctx, const TTMatrix& matrix) {
  const int64_t used = matrix.shape.out, width = matrix.shape.padded_out();
  if (width == used) return matrix.bias->value;
  Tensor row = ctx.temp({width}, "tt bias row");
  ctx.ops.copy(row.rows(0, used), matrix.bias->value);
  ctx.ops.fill(Mat(row.rows(used, width - used), 1, width - used), 0);
  return row;
}

}  // namespace

Tensor TTSequential::forward(Ctx& ctx, const TTMatrix& matrix, Tensor x, TTCalls& calls) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs();
  const int64_t tokens = x.size(0);
  {
    const TTCalls::Scope scope(calls);
    effective_ = matrix.effective(ctx, calls);
    calls.make(ctx);
  }

  in_.clear();
  Tensor z = transposed(ctx, x, shape.padded_in());
  x = {};
  for (size_t k = 0; k < p; ++k) {  // Z_k (r_k, rest T) = E_k^T Z_{k-1} (r_{k-1} n_k, rest T)
    const int64_t rows = shape.ranks[k] * shape.in_modes[k], after = shape.ranks[k + 1], rest = z.count() / rows;
    Tensor next = ctx.temp({after, rest}, "tt z");
    ctx.ops.gemm(next, Mat(effective_[k], rows, after), true, Mat(z, rows, rest), false);
    in_.push_back(next);
    z = std::move(next);
  }
  z = {};

  out_.clear();
  Tensor y;
  for (size_t k = 0; k < q; ++k) {  // Y_k (T m_1..m_{k-1}, m_k r_{p+k}) = Y_{k-1} (T m_1..m_{k-1}, r_{p+k-1}) E_{p+k}
    const int64_t before = shape.ranks[p + k], columns = shape.out_modes[k] * shape.ranks[p + k + 1];
    const int64_t rows = k == 0 ? tokens : out_.back().count() / before;
    const Tensor& source = k == 0 ? in_.back() : out_.back();  // Z_p (r_p, T) is Y_0 transposed
    const bool last = k + 1 == q;
    Tensor next = ctx.temp({last ? tokens : rows, last ? shape.padded_out() : columns}, last ? "tt y" : "tt part of y");
    if (last) ctx.ops.broadcast_rows(next, bias_row(ctx, matrix));
    ctx.ops.gemm(Mat(next, rows, columns), k == 0 ? Mat(source) : Mat(source, rows, before), k == 0,
                 Mat(effective_[p + k], before, columns), false, 1, last ? 1 : 0);
    if (last)
      y = std::move(next);
    else
      out_.push_back(std::move(next));
  }
  if (shape.padded_out() == shape.out) return y;
  const Tensor columns = transposed(ctx, y, shape.padded_out());
  y = {};
  return transposed_top(ctx, columns, shape.out);
}

Tensor TTSequential::backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into, TTCalls& calls) {
  const TTShape& shape = matrix.shape;
  const size_t p = matrix.inputs(), q = matrix.outputs();
  const int64_t tokens = dy.size(0);
  TTGradients gradients;
  gradients.begin(ctx, matrix);
  ctx.ops.column_sum(gradients.bias, dy);
  Tensor g = std::move(dy);  // gradient of Y_k
  if (shape.padded_out() > shape.out) {
    const Tensor rows = transposed(ctx, g, shape.padded_out());
    g = transposed_top(ctx, rows, shape.padded_out());
  }
  for (size_t k = q; k-- > 0;) {
    const int64_t before = shape.ranks[p + k], columns = shape.out_modes[k] * shape.ranks[p + k + 1], rows = g.count() / columns;
    const Mat slab(g, rows, columns), core(effective_[p + k], before, columns), dcore(gradients.cores[p + k], before, columns);
    Tensor next = ctx.temp(k == 0 ? Shape{before, tokens} : Shape{rows, before}, "tt dz");
    if (k == 0) {  // dE = Z_p dY_1, dZ_p (r_p, T) = E dY_1^T
      ctx.ops.gemm(dcore, in_.back(), false, slab, false);
      ctx.ops.gemm(next, core, false, slab, true);
    } else {  // dE = Y_{k-1}^T dY_k, dY_{k-1} = dY_k E^T
      ctx.ops.gemm(dcore, Mat(out_[k - 1], rows, before), true, slab, false);
      ctx.ops.gemm(next, slab, false, core, true);
      out_[k - 1] = {};
    }
    g = std::move(next);
  }
  for (size_t k = p; k-- > 0;) {  // dE_k = Z_{k-1} dZ_k^T, dZ_{k-1} = E_k dZ_k
    const int64_t rows = shape.ranks[k] * shape.in_modes[k], after = shape.ranks[k + 1], rest = g.count() / after;
    in_[k] = {};
    Tensor source = k > 0 ? in_[k - 1] : transposed(ctx, input.take(ctx), shape.padded_in());
    ctx.ops.gemm(Mat(gradients.cores[k], rows, after), Mat(source, rows, rest), false, Mat(g, after, rest), true);
    source = {};
    Tensor next = ctx.temp({rows, rest}, "tt dz");
    ctx.ops.gemm(next, Mat(effective_[k], rows, after), false, Mat(g, after, rest), false);
    g = std::move(next);
  }
  drop();
  {
    const TTCalls::Scope scope(calls);
    gradients.mask(ctx, matrix, calls);
    calls.make(ctx);
  }
  gradients.hand_over(ctx, matrix);
  Tensor dx = transposed_top(ctx, g.view({shape.padded_in(), tokens}), shape.in);
  if (!into) return dx;
  ctx.ops.add(into, into, dx);
  return into;
}

}  // namespace comera
