#include "core/ops/group_norm.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_statistics(const char* op, const Tensor& x, const Tensor& mean, const Tensor& variance) {
  check_float(op, "x", x, 2);
  check_float(op, "mean", mean, 2);
  const int64_t examples = mean.size(0), groups = mean.size(1);
  CHECK(examples > 0 && groups > 0 && x.size(0) > 0 && x.size(0) % examples == 0 && x.size(1) % groups == 0,
        op << ": mean is " << text(mean) << " of x " << text(x));
  check_shape(op, "mean", mean, {examples, groups}, x.dtype());
  check_shape(op, "variance", variance, {examples, groups}, x.dtype());
}

}  // namespace

void GroupStatistics::check() const { check_statistics(name, x, mean, variance); }

void GroupNormForward::check() const {
  check_statistics(name, x, mean, variance);
  const Shape channels{x.size(1)};
  check_shape(name, "y", y, x.shape(), x.dtype());
  check_shape(name, "gamma", gamma, channels, x.dtype());
  check_shape(name, "beta", beta, channels, x.dtype());
}

void GroupNormBackward::check() const {
  check_statistics(name, x, mean, variance);
  const Shape channels{x.size(1)};
  check_shape(name, "dx", dx, x.shape(), x.dtype());
  check_shape(name, "dy", dy, x.shape(), x.dtype());
  check_shape(name, "dgamma", dgamma, channels, x.dtype());
  check_shape(name, "dbeta", dbeta, channels, x.dtype());
  check_shape(name, "gamma", gamma, channels, x.dtype());
}

}  // namespace comera::op
