#include "core/ops/norm.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_rows(const char* op, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, const Tensor& beta, const Tensor& x) {
  const Shape rows{x.size(0)}, columns{x.size(1)};
  if (mean || beta) {
    check_shape(op, "mean", mean, rows, x.dtype());
    check_shape(op, "beta", beta, columns, x.dtype());
  }
  check_shape(op, "rstd", rstd, rows, x.dtype());
  check_shape(op, "gamma", gamma, columns, x.dtype());
}

}  // namespace

void NormForward::check() const {
  check_float(name, "x", x, 2);
  check_shape(name, "y", y, x.shape(), x.dtype());
  check_shape_or_empty(name, "branch", branch, x.shape(), x.dtype());
  if (branch) check_shape(name, "sum", sum, x.shape(), x.dtype());
  if (thin) {
    CHECK(!branch, name << ": both a branch and a product");
    check_shape_or_empty(name, "sum", sum, x.shape(), x.dtype());
    thin->check(name, x);
  }
  check_rows(name, mean, rstd, gamma, beta, x);
  if (before) {
    CHECK(thin, name << ": a norm before, but no product");
    check_rows(name, before->mean, before->rstd, before->gamma, before->beta, x);
  }
  check_dropout(name, dropout, step);
  check_dropout(name, after, step);
}

void NormBackward::check() const {
  check_float(name, "dy", dy, 2);
  const Shape rows{dy.size(0)}, columns{dy.size(1)};
  check_shape(name, "dsum", dsum, dy.shape(), dy.dtype());
  check_shape_or_empty(name, "dbranch", dbranch, dy.shape(), dy.dtype());
  check_shape(name, "dgamma", dgamma, columns, dy.dtype());
  check_shape(name, "sum", sum, dy.shape(), dy.dtype());
  if (mean || dbeta) {
    check_shape(name, "mean", mean, rows, dy.dtype());
    check_shape(name, "dbeta", dbeta, columns, dy.dtype());
  }
  check_shape(name, "rstd", rstd, rows, dy.dtype());
  check_shape(name, "gamma", gamma, columns, dy.dtype());
  if (thin) {
    thin->check(name, dy);
    CHECK(!dsum.raw() || dsum.raw() != sum.raw(), name << ": dsum over the sum, with a product");
  }
  if (onward) {
    CHECK(dbranch, name << ": a product of dbranch, but no dbranch");
    ThinProduct{onward->u, onward->r}.check(name, dy);
  }
  check_dropout(name, after, step);
  check_dropout(name, dropout, step);
}

Work NormBackward::work(double bytes) const {
  return {(thin ? thin->flops(dy) : 0) + (onward ? ThinProduct{onward->u, onward->r}.flops(dy) : 0), 0, bytes};
}

}  // namespace comera::op
