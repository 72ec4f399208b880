#include "core/ops/stash_codes.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_stash(const char* op, const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) {
  check_float(op, "x", x, 2);
  CHECK(groups > 0 && x.size(1) % groups == 0, op << ": " << x.size(1) << " features do not split into " << groups << " equal groups");
  check_shape(op, "codes", codes, x.shape(), DType::u8);
  check_shape(op, "used", used, {groups, 2}, x.dtype());
}

}  // namespace

void Int8Keep::check() const {
  check_stash(name, x, codes, used, groups);
  check_shape(name, "range", range, {groups, 2}, x.dtype());
  CHECK(decay >= 0 && decay < 1, "int8_keep: decay " << decay);
  check_step(name, step);
}
Work Int8Keep::work(double bytes) const { return {0, 0, bytes + static_cast<double>(x.bytes())}; }  // x is read twice

void Int8Load::check() const { check_stash(name, x, codes, used, groups); }

void Bf16Keep::check() const {
  check_float(name, "x", x);
  check_shape(name, "codes", codes, x.shape(), DType::bf16);
  if (step) check_step(name, step);
}

void Bf16Load::check() const {
  check_float(name, "x", x);
  check_shape(name, "codes", codes, x.shape(), DType::bf16);
}

}  // namespace comera::op
