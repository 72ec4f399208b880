#include "core/ops/norm.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

void NormForward::check() const {
  check_float(name, "x", x, 2);
  const Shape rows{x.size(0)}, columns{x.size(1)};
  check_shape(name, "y", y, x.shape(), x.dtype());
  check_shape_or_empty(name, "branch", branch, x.shape(), x.dtype());
  if (branch) check_shape(name, "sum", sum, x.shape(), x.dtype());
  if (mean || beta) {
    check_shape(name, "mean", mean, rows, x.dtype());
    check_shape(name, "beta", beta, columns, x.dtype());
  }
  check_shape(name, "rstd", rstd, rows, x.dtype());
  check_shape(name, "gamma", gamma, columns, x.dtype());
  check_dropout(name, dropout, step);
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
  check_dropout(name, dropout, step);
}

}  // namespace comera::op
