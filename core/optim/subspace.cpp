#include "core/optim/subspace.h"

#include <algorithm>

namespace comera {

Tensor random_start(Ctx& ctx, const Projection& p) {
  const Tensor start = ctx.temp(stored_projection(p).shape, "random projection");
  ctx.ops.run(op::Normal{start, p.site, ctx.step});
  return start;
}

void iterate_subspace(Ctx& ctx, const Projection& p, const Tensor& basis, Tensor start, const Tensor& g, int64_t passes) {
  // The vectors of a basis are rows. `range`: of the side that is not projected, `back`: of the one that is.
  const int64_t projected = p.gradient[p.right ? 1 : 0], other = p.gradient[p.right ? 0 : 1];
  const Tensor range = ctx.temp({p.rank, other}, "range of the gradient");
  ctx.ops.gemm(range, start, !p.right, g, p.right);
  start = {};
  ctx.ops.run(op::Orthonormal{range});
  for (int64_t pass = 1; pass < passes; ++pass) {
    const Tensor back = ctx.temp({p.rank, projected}, "range of the transposed gradient");
    ctx.ops.gemm(back, range, false, g, !p.right);
    ctx.ops.run(op::Orthonormal{back});
    ctx.ops.gemm(range, back, false, g, p.right);
    ctx.ops.run(op::Orthonormal{range});
  }
  const Tensor small = ctx.temp(basis.shape(), "gradient in its range");
  if (p.right)
    ctx.ops.gemm(small, range, false, g, false);
  else
    ctx.ops.gemm(small, g, false, range, true);
  ctx.ops.singular_basis(basis, small, !p.right);
}

int64_t passes_of(const std::string& decomposition, int64_t passes) {
  CHECK(decomposition == "exact" || decomposition == "subspace", "a decomposition by '" << decomposition << "'");
  return decomposition == "exact" ? 0 : passes;
}

void leading_directions(Ctx& ctx, const Projection& p, const Tensor& basis, const Tensor& g, int64_t number, int64_t passes) {
  if (passes == 0 || 2 * p.rank > std::min(p.gradient[0], p.gradient[1])) return ctx.ops.singular_basis(basis, g, !p.right);
  iterate_subspace(ctx, p, basis, number == 0 ? random_start(ctx, p) : basis, g, passes);
}

}  // namespace comera
