#include "core/ops/row_sampling.h"

#include <limits>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

void SampleRows::check() const {
  check_float(name, "x", x, 2);
  const int64_t kept = index.count();
  check_shape(name, "index", index, {kept}, DType::i32);
  check_shape(name, "weight", weight, {kept}, x.dtype());
  CHECK(kept > 0 && kept < x.size(0), "sample_rows: " << kept << " of " << x.size(0) << " rows");
  CHECK(x.size(0) <= std::numeric_limits<int32_t>::max(), "sample_rows: " << x.size(0) << " rows");
  CHECK(certain >= -1 && certain < kept, "sample_rows: " << certain << " certain rows of " << kept);
  check_step(name, step);
}

void PickRows::check() const {
  check_float(name, "x", x, 2);
  check_shape(name, "y", y, {index.count(), x.size(1)}, x.dtype());
  check_shape(name, "index", index, {y.size(0)}, DType::i32);
  if (weight) check_shape(name, "weight", weight, {y.size(0)}, x.dtype());
}
Work PickRows::work(double bytes) const { return {0, 0, bytes - static_cast<double>(x.bytes()) + static_cast<double>(y.bytes())}; }

}  // namespace comera::op
