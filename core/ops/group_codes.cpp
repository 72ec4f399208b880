#include "core/ops/group_codes.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_groups(const char* op, const Tensor& x, const Tensor& codes, const Tensor& scale, const Tensor& zero, const GroupCodes& how) {
  check_float(op, "x", x);
  CHECK(how.bits == 4 || how.bits == 8, op << ": codes of " << how.bits << " bits");
  CHECK(how.group > 0, op << ": groups of " << how.group);
  check_count(op, "codes", codes, how.bytes(x.count()), DType::u8);
  check_shape(op, "scale", scale, {how.groups(x.count())}, x.dtype());
  check_shape(op, "zero", zero, {how.groups(x.count())}, x.dtype());
}

}  // namespace

void GroupQuantise::check() const {
  check_groups(name, x, codes, scale, zero, how);
  if (site != 0) check_step(name, step);
}
Work GroupQuantise::work(double bytes) const { return {0, 0, bytes + static_cast<double>(x.bytes())}; }  // x is read twice

void GroupDequantise::check() const { check_groups(name, x, codes, scale, zero, how); }

}  // namespace comera::op
