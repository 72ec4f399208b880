#include "core/ops/losses.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

template <class Op>
void check_loss(const Op& op) {
  const Tensor& logits = op.logits;
  check_results(Op::name, op.results);
  check_float(Op::name, "logits", logits, 2);
  check_shape(Op::name, "dlogits", op.dlogits, logits.shape(), logits.dtype());
  check_shape_or_empty(Op::name, "row_loss", op.row_loss, {logits.size(0)}, logits.dtype());
  check_count(Op::name, "labels", op.labels, logits.size(0), DType::i32);
}

}  // namespace

void CrossEntropy::check() const { check_loss(*this); }

void BinaryCrossEntropy::check() const {
  check_loss(*this);
  CHECK(logits.size(1) == 1, name << ": logits is " << text(logits) << ", expected one column");
}

void ScaleByCeWeight::check() const {
  check_float(name, "y", y);
  check_results(name, results);
}

}  // namespace comera::op
