// Bonds of other sizes: cores, rank vectors and optimizer states are sliced together and take new memory. A cut leaves
// entries out (rank_control.h), growth adds some (rank_grow.h), a checkpoint brings the sizes it was written with.
#pragma once
#include <cstdint>
#include <vector>

#include "core/layers/lora.h"
#include "core/optim/optimizer.h"

namespace comera {

// The entries each bond shall have, [layer][bond][index]: old ones by their number, ascending, and after them
// kNewEntry for each new one; at least one. Empty: nothing is to change.
using BondEntries = std::vector<std::vector<std::vector<int64_t>>>;
inline constexpr int64_t kNewEntry = -1;

// Slices U_k[K_{k-1}, :, K_k], D_k[K_k] and the optimizer's states by their axes, and takes new memory after giving back the
// old. New entries are 0 everywhere; states that are means are scaled so that their sums stay. All other values and states
// stay bit for bit; gradients are undefined afterwards. 8-bit states of a changed core are requantised, as their blocks
// change. The caller plans its programs again.
void resize_bonds(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const BondEntries& bonds);

// The same for the factors A (r, I) and B (O, r) of LoRA, matrix by matrix in building order: entries are rows of A and columns of B.
using FactorEntries = std::vector<std::vector<int64_t>>;
void resize_factors(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const FactorEntries& entries);

}  // namespace comera
