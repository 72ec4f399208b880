#include "core/ops/linalg.h"

#include <algorithm>

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

void SingularBasis::check() const {
  check_float(name, "g", g, 2);
  check_float(name, "basis", basis, 2);
  const int64_t m = g.size(0), n = g.size(1), rank = basis.size(left ? 1 : 0);
  check_shape(name, "basis", basis, left ? Shape{m, rank} : Shape{rank, n}, g.dtype());
  CHECK(rank <= std::min(m, n), name << ": " << rank << " singular vectors of " << text(g));
}

}  // namespace comera::op
