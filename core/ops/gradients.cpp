#include "core/ops/gradients.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {
void check_with_results(const char* op, const char* what, const Tensor& y, const Tensor& results) {
  check_float(op, what, y);
  check_results(op, results);
}
}  // namespace

void AddPart::check() const { check_with_results(name, "dlogits", dlogits, results); }
void FinishParts::check() const { check_results(name, results); }
void WeightGradients::check() const { check_with_results(name, "y", y, results); }
void ClipGradients::check() const {
  check_with_results(name, "y", y, results);
  CHECK(limit > 0, name << ": limit " << limit);
}

}  // namespace comera::op
