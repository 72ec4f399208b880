// Another rank of LoRA's factors while a run trains (METHODS.md 4.1).
#pragma once
#include <cstdint>
#include <optional>

#include "core/methods/rank_resize.h"

namespace comera {

// The rank of the factors under `wanted`, where the model has some and it is another one than now; else none.
std::optional<int64_t> new_factor_rank(const MethodConfig& now, const MethodConfig& wanted, ParamSet& params);

// The directions k of A (r, I) and B (O, r) that stay at `rank`: those with the largest |a_k| |b_k|, in their order; more become new ones.
FactorEntries entries_at_rank(Device& device, ParamSet& params, int64_t rank);

// After resize_factors(): new rows of A and columns of B are drawn from seed, step and name as at the start. One of the two starts at 0, so
// the function stays.
void draw_new_directions(Device& device, ParamSet& params, const FactorEntries& entries, uint64_t seed, int64_t step);

}  // namespace comera
