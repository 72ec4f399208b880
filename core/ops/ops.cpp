// The checked calls for products, pointwise work, layer norm and attention; tables, ranks, losses and optimizers
// are in ops_training.cpp.
#include "core/ops/ops.h"

#include <algorithm>

#include "core/ops/check.h"

namespace comera {

using namespace ops_check;

namespace {

void inside(const char* op, const char* name, const Mat& a) {
  CHECK(a.tensor, op << ": " << name << " is empty");
  const bool none = a.rows == 0 || a.cols == 0;
  CHECK(a.rows >= 0 && a.cols >= 0 && a.offset >= 0 && a.ld >= a.cols &&
            (none || a.offset + (a.rows - 1) * a.ld + a.cols <= a.tensor.count()),
        op << ": " << name << " " << a.rows << " x " << a.cols << ", row step " << a.ld << ", offset " << a.offset
           << " lies outside its tensor " << text(a.tensor));
}

void sequences_of(const char* op, const Sequences& sequences) {
  CHECK(sequences.starts && sequences.starts.shape().rank() == 1, op << ": starts is " << text(sequences.starts));
  const Shape shape{sequences.starts.size(0)};
  exactly(op, "starts", sequences.starts, shape, DType::i32);
  exactly(op, "lengths", sequences.lengths, shape, DType::i32);
}

}  // namespace

// ---- products -----------------------------------------------------------------------------------------------------
namespace {

// Checks a product and counts it; `adds`: C is read, too.
void look_at(Ops& ops, const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, bool adds) {
  inside("gemm", "C", c);
  inside("gemm", "A", a);
  inside("gemm", "B", b);
  floats("gemm", "C", c.tensor);
  CHECK(a.tensor.dtype() == c.tensor.dtype() && b.tensor.dtype() == c.tensor.dtype(),
        "gemm: C " << text(c.tensor) << ", A " << text(a.tensor) << ", B " << text(b.tensor) << " are of different types");
  const int64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols;
  const int64_t kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
  CHECK(c.rows == m && c.cols == n && k == kb,
        "gemm: C " << c.rows << " x " << c.cols << " from op(A) " << m << " x " << k << " and op(B) " << kb << " x " << n);
  ops.work.gemm_flops += 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  ops.work.gemm_bytes += static_cast<double>(m * k + k * n + (adds ? 2 : 1) * m * n) * static_cast<double>(size_of(c.tensor.dtype()));
  if (ops.dry) return;
  for (const Mat* t : {&c, &a, &b})
    CHECK(t->tensor.raw() || t->tensor.count() == 0, "gemm: " << text(t->tensor) << " of a dry run in a real one");
}

}  // namespace

void Ops::gemm(const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, double alpha, double beta) {
  look_at(*this, c, a, ta, b, tb, beta != 0);
  if (begin(*this, "gemm", {})) do_gemm(c, a, ta, b, tb, alpha, beta);
}

void Ops::gemm(std::span<const Product> all) {
  if (all.empty()) return;
  for (const Product& p : all) {
    look_at(*this, p.c, p.a, p.transpose_a, p.b, p.transpose_b, p.beta != 0);
    one_type("gemm", "C", p.c.tensor, all[0].c.tensor);
  }
  if (begin(*this, "gemm", {})) do_gemms(all);
}

void Ops::linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w) {
  floats("linear", "w", w, 2);
  floats("linear", "x", x, 2);
  const int64_t in = w.size(transpose_w ? 1 : 0), out = w.size(transpose_w ? 0 : 1);
  exactly("linear", "x", x, {x.size(0), in}, w.dtype());
  exactly("linear", "y", y, {x.size(0), out}, w.dtype());
  exactly("linear", "b", b, {out}, w.dtype());
  for (const Tensor* t : {&x, &w, &b}) apart("linear", y, *t);
  work.gemm_flops += 2.0 * static_cast<double>(y.count()) * static_cast<double>(in);
  work.gemm_bytes += static_cast<double>(x.bytes() + w.bytes() + y.bytes());
  if (begin(*this, "linear", {&y, &b})) do_linear(y, x, w, b, transpose_w);
}

void Ops::linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
  floats("linear_backward", "dy", dy, 2);
  floats("linear_backward", "x", x, 2);
  exactly("linear_backward", "x", x, {dy.size(0), x.size(1)}, dy.dtype());
  exactly("linear_backward", "dw", dw, {dy.size(1), x.size(1)}, dy.dtype());
  exactly("linear_backward", "db", db, {dy.size(1)}, dy.dtype());
  for (const Tensor* t : {&dy, &x}) {
    apart("linear_backward", dw, *t);
    apart("linear_backward", db, *t);
  }
  apart("linear_backward", dw, db);
  work.gemm_flops += 2.0 * static_cast<double>(dw.count()) * static_cast<double>(dy.size(0));
  work.gemm_bytes += static_cast<double>(dy.bytes() + x.bytes() + dw.bytes());
  if (begin(*this, "linear_backward", {&db, &dy})) do_linear_backward(dw, db, dy, x);
}

// ---- pointwise ----------------------------------------------------------------------------------------------------
void Ops::fill(const Mat& y, double value) {
  inside("fill", "y", y);
  floats("fill", "y", y.tensor);
  work.other_bytes += static_cast<double>(y.rows * y.cols) * static_cast<double>(size_of(y.tensor.dtype()));
  CHECK(dry || y.tensor.raw() || y.tensor.count() == 0, "fill: " << text(y.tensor) << " of a dry run in a real one");
  if (begin(*this, "fill", {})) do_fill(y, value);
}

void Ops::copy(const Tensor& y, const Tensor& x) {
  CHECK(x, "copy: x is empty");
  counted("copy", "y", y, x.count(), x.dtype());
  if (begin(*this, "copy", {&y, &x})) do_copy(y, x);
}

void Ops::copy(std::span<const Copying> all) {
  if (all.empty()) return;
  for (const Copying& p : all) {
    inside("copy", "y", p.y);
    inside("copy", "x", p.x);
    floats("copy", "x", p.x.tensor);
    one_type("copy", "y", p.y.tensor, all[0].x.tensor);
    one_type("copy", "x", p.x.tensor, all[0].x.tensor);
    CHECK(p.y.rows == p.x.rows && p.y.cols == p.x.cols,
          "copy: y is " << p.y.rows << " x " << p.y.cols << ", x is " << p.x.rows << " x " << p.x.cols);
    work.other_bytes += 2 * static_cast<double>(p.x.rows * p.x.cols) * static_cast<double>(size_of(p.x.tensor.dtype()));
    for (const Mat* m : {&p.y, &p.x})
      CHECK(dry || m->tensor.raw() || m->tensor.count() == 0, "copy: " << text(m->tensor) << " of a dry run in a real one");
  }
  if (begin(*this, "copy", {})) do_copies(all);
}

void Ops::add(const Tensor& y, const Tensor& a, const Tensor& b) {
  floats("add", "y", y);
  counted("add", "a", a, y.count(), y.dtype());
  counted("add", "b", b, y.count(), y.dtype());
  if (begin(*this, "add", {&y, &a, &b})) do_add(y, a, b);
}

void Ops::scale(const Tensor& y, const Tensor& x, double factor) {
  floats("scale", "y", y);
  counted("scale", "x", x, y.count(), y.dtype());
  if (begin(*this, "scale", {&y, &x})) do_scale(y, x, factor);
}

void Ops::axpy(const Tensor& y, double factor, const Tensor& x) {
  floats("axpy", "y", y);
  counted("axpy", "x", x, y.count(), y.dtype());
  if (begin(*this, "axpy", {&y, &y, &x})) do_axpy(y, factor, x);
}

void Ops::permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) {
  floats("permute", "x", x, static_cast<int>(axes.size()));
  unsigned seen = 0;
  Shape shape;
  for (int axis : axes) {
    CHECK(axis >= 0 && axis < x.shape().rank() && !(seen >> axis & 1u),
          "permute: axis " << axis << " of " << text(x) << " is wrong or named twice");
    seen |= 1u << axis;
    shape.push_back(x.size(axis));
  }
  exactly("permute", "y", y, shape, x.dtype());
  apart("permute", y, x);
  if (begin(*this, "permute", {&y, &x})) do_permute(y, x, axes);
}

void Ops::broadcast_rows(const Tensor& y, const Tensor& row) {
  floats("broadcast_rows", "y", y, 2);
  exactly("broadcast_rows", "row", row, {y.size(1)}, y.dtype());
  apart("broadcast_rows", y, row);
  if (begin(*this, "broadcast_rows", {&y, &row})) do_broadcast_rows(y, row);
}

void Ops::column_sum(const Tensor& sum, const Tensor& x) {
  floats("column_sum", "x", x, 2);
  exactly("column_sum", "sum", sum, {x.size(1)}, x.dtype());
  apart("column_sum", sum, x);
  if (begin(*this, "column_sum", {&sum, &x})) do_column_sum(sum, x);
}

void Ops::activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  floats("activation_forward", "y", y);
  counted("activation_forward", "x", x, y.count(), y.dtype());
  if (begin(*this, "activation_forward", {&y, &x})) do_activation_forward(kind, y, x);
}

void Ops::activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) {
  floats("activation_backward", "dx", dx);
  counted("activation_backward", "dy", dy, dx.count(), dx.dtype());
  counted("activation_backward", "saved", saved, dx.count(), dx.dtype());
  if (begin(*this, "activation_backward", {&dx, &dy, &saved})) do_activation_backward(kind, dx, dy, saved);
}

void Ops::dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) {
  floats("dropout", "y", y);
  counted("dropout", "x", x, y.count(), y.dtype());
  ops_check::dropout("dropout", dropout, step);
  if (begin(*this, "dropout", {&y, &x})) do_dropout(y, x, dropout, step);
}

// ---- layer norm ---------------------------------------------------------------------------------------------------
void Ops::norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x, const Tensor& branch,
                       const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout, const Tensor& step) {
  const char* op = "norm_forward";
  floats(op, "x", x, 2);
  const Shape rows{x.size(0)}, columns{x.size(1)};
  exactly(op, "y", y, x.shape(), x.dtype());
  exactly_or_empty(op, "branch", branch, x.shape(), x.dtype());
  if (branch) exactly(op, "sum", sum, x.shape(), x.dtype());
  exactly(op, "mean", mean, rows, x.dtype());
  exactly(op, "rstd", rstd, rows, x.dtype());
  exactly(op, "gamma", gamma, columns, x.dtype());
  exactly(op, "beta", beta, columns, x.dtype());
  ops_check::dropout(op, dropout, step);
  const Tensor none;
  if (begin(*this, op, {&y, branch ? &sum : &none, &mean, &rstd, &x, &branch, &gamma, &beta}))
    do_norm_forward(y, sum, mean, rstd, x, branch, gamma, beta, eps, dropout, step);
}

void Ops::norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                        const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout,
                        const Tensor& step) {
  const char* op = "norm_backward";
  floats(op, "dy", dy, 2);
  const Shape rows{dy.size(0)}, columns{dy.size(1)};
  exactly(op, "dsum", dsum, dy.shape(), dy.dtype());
  exactly_or_empty(op, "dbranch", dbranch, dy.shape(), dy.dtype());
  exactly(op, "dgamma", dgamma, columns, dy.dtype());
  exactly(op, "dbeta", dbeta, columns, dy.dtype());
  exactly(op, "sum", sum, dy.shape(), dy.dtype());
  exactly(op, "mean", mean, rows, dy.dtype());
  exactly(op, "rstd", rstd, rows, dy.dtype());
  exactly(op, "gamma", gamma, columns, dy.dtype());
  ops_check::dropout(op, dropout, step);
  if (begin(*this, op, {&dsum, &dbranch, &dgamma, &dbeta, &dy, &sum, &mean, &rstd, &gamma}))
    do_norm_backward(dsum, dbranch, dgamma, dbeta, dy, sum, mean, rstd, gamma, dropout, step);
}

// ---- attention ----------------------------------------------------------------------------------------------------
namespace {

// Shapes common to both directions. Returns the flops of one product (queries x keys x D): the lengths live on the
// device, so this is an upper bound, sum of length^2 <= longest * min(S * longest, T).
double attention_shapes(const char* op, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) {
  floats(op, "q", q, 2);
  const int64_t tokens = q.size(0), width = q.size(1), longest = sequences.longest;
  CHECK(heads > 0 && width % heads == 0, op << ": " << heads << " heads in " << width << " features");
  exactly(op, "k", k, q.shape(), q.dtype());
  exactly(op, "v", v, q.shape(), q.dtype());
  exactly(op, "lse", lse, {heads, tokens}, q.dtype());
  sequences_of(op, sequences);
  CHECK(longest >= 0, op << ": longest sequence " << longest);
  const int64_t count = sequences.starts.size(0);
  exactly_or_empty(op, "probs", probs, {count, heads, longest, longest}, q.dtype());
  ops_check::dropout(op, dropout, step);
  return 2.0 * static_cast<double>(width) * static_cast<double>(longest) * static_cast<double>(std::min(count * longest, tokens));
}

}  // namespace

void Ops::attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v,
                            const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) {
  const char* op = "attention_forward";
  const double product = attention_shapes(op, lse, probs, q, k, v, sequences, heads, dropout, step);
  exactly(op, "out", out, q.shape(), q.dtype());
  work.gemm_flops += 2 * product;  // Q K^T, P V
  if (begin(*this, op, {&out, &lse, &probs, &q, &k, &v, &sequences.starts, &sequences.lengths}))
    do_attention_forward(out, lse, probs, q, k, v, sequences, heads, dropout, step);
}

void Ops::attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse,
                             const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences,
                             int64_t heads, Dropout dropout, const Tensor& step) {
  const char* op = "attention_backward";
  const double product = attention_shapes(op, lse, probs, q, k, v, sequences, heads, dropout, step);
  exactly(op, "dq", dq, q.shape(), q.dtype());
  exactly(op, "dk", dk, q.shape(), q.dtype());
  exactly(op, "dv", dv, q.shape(), q.dtype());
  exactly(op, "dout", dout, q.shape(), q.dtype());
  work.gemm_flops += (probs ? 4 : 5) * product;  // dP, dV, dQ, dK, and Q K^T again
  if (begin(*this, op, {&dq, &dk, &dv, &dout, &lse, &probs, &q, &k, &v, &sequences.starts, &sequences.lengths}))
    do_attention_backward(dq, dk, dv, dout, lse, probs, q, k, v, sequences, heads, dropout, step);
}

}  // namespace comera
