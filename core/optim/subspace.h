// Leading singular directions of a gradient by subspace iteration (METHODS.md 2.3; Halko, Martinsson and Tropp 2011, algorithm 4.4):
// products with the gradient and small decompositions, in place of its own.
#pragma once
#include <string>

#include "core/optim/projector.h"

namespace comera {

// `basis` (r, n) on the right, (m, r) on the left, becomes the leading singular directions of g (m, n) in the space that `passes` >= 1
// passes reach from `start`, of the same shape; it may be `basis` itself. Where g is not finite the basis stays as it is.
void iterate_subspace(Ctx& ctx, const Projection& projection, const Tensor& basis, Tensor start, const Tensor& g, int64_t passes);
// Normal draws in the shape of the basis.
Tensor random_start(Ctx& ctx, const Projection& projection);

// Passes of a setting `decomposition` (exact | subspace): 0 is exact.
int64_t passes_of(const std::string& decomposition, int64_t passes);
// `basis` becomes the leading singular directions of g: exactly, or by so many passes from the basis before (in refresh 0: from normal
// draws). Exactly, too, where the rank is over half of the shorter side, as passes would cost more than they save.
void leading_directions(Ctx& ctx, const Projection& projection, const Tensor& basis, const Tensor& g, int64_t number, int64_t passes);

}  // namespace comera
