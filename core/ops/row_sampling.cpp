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
  CHECK(kept > 0 && kept <= x.size(0), "sample_rows: " << kept << " of " << x.size(0) << " rows");
  CHECK(x.size(0) <= std::numeric_limits<int32_t>::max(), "sample_rows: " << x.size(0) << " rows");
  CHECK(certain >= -1 && certain <= kept && (!draws.distinct || certain == 0), "sample_rows: " << certain << " certain rows of " << kept);
  CHECK(draws.power >= 0 && draws.power <= 2, "sample_rows: the power " << draws.power << " of norms");
  check_step(name, step);
}

namespace {

// x and what is picked from it or added to it.
void check_picked(const char* op, const Tensor& x, const Tensor& picked, const Tensor& index, const Tensor& weight, bool columns) {
  check_float(op, "x", x, 2);
  CHECK(index && index.shape().rank() == 1, op << ": index is " << text(index));
  const int64_t kept = index.count();
  check_shape(op, "the rows", picked, columns ? Shape{x.size(0), kept} : Shape{kept, x.size(1)}, x.dtype());
  check_shape(op, "index", index, {kept}, DType::i32);
  if (weight) check_shape(op, "weight", weight, {kept}, x.dtype());
}

}  // namespace

void PickRows::check() const { check_picked(name, x, y, index, weight, columns); }
Work PickRows::work(double bytes) const { return {0, 0, bytes - static_cast<double>(x.bytes()) + static_cast<double>(y.bytes())}; }

void AddRows::check() const { check_picked(name, x, u, index, weight, columns); }
Work AddRows::work(double bytes) const { return {0, 0, bytes + 2 * (static_cast<double>(u.bytes()) - static_cast<double>(x.bytes()))}; }

}  // namespace comera::op
