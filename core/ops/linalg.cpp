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

void Orthonormal::check() const {
  check_float(name, "q", q, 2);
  CHECK(q.size(0) <= q.size(1), name << ": " << q.size(0) << " rows of " << q.size(1) << " entries");
}

void CoapDirections::check() const {
  check_float(name, "lost", lost, 2);
  check_shape(name, "moment", moment, lost.shape(), lost.dtype());
  check_shape(name, "g", g, lost.shape(), lost.dtype());
}

void CoapFactors::check() const {
  check_float(name, "g", g, 2);
  check_float(name, "s", s, 2);
  const int64_t rank = s.size(0);
  const Shape square = {rank, rank}, rows = {g.size(0), rank};
  check_shape(name, "s", s, square, g.dtype());
  check_shape(name, "q", q, square, g.dtype());
  if (!u) {
    CHECK(!gv && !uv && !of_g && !of_moment, name << ": tensors of a moment, but u is missing");
    return;
  }
  check_shape(name, "u", u, rows, g.dtype());
  check_shape(name, "gv", gv, rows, g.dtype());
  check_shape(name, "uv", uv, rows, g.dtype());
  check_shape(name, "of_g", of_g, rows, g.dtype());
  check_shape(name, "of_moment", of_moment, rows, g.dtype());
}

void ClippedStep::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
  CHECK(size > 0, name << ": size " << size);
}

void LazyRefresh::check() const {
  check_float(name, "basis", basis, 2);
  check_float(name, "queue", queue, 1);
  CHECK(queue.dtype() == basis.dtype() && queue.count() > 0, name << ": queue is " << text(queue));
  CHECK(basis.count() > 0, name << ": basis is " << text(basis));
  check_shape(name, "last", last, {basis.size(left ? 0 : 1)}, basis.dtype());
  check_shape(name, "counts", counts, {2}, DType::i32);
  CHECK(factor > 1, name << ": factor " << factor);
}

}  // namespace comera::op
