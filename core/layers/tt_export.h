// Tensor trains as plain matrices, on the host in double: for `export --dense`, for folded exports, and for tests.
#pragma once
#include <string>
#include <vector>

#include "core/layers/form.h"

namespace comera {

// A copy of every parameter in which the rank vectors are folded into the cores: U_k becomes U_k * thr(D_k), and D_k
// becomes 1 where it was live and 0 where it was dead, so the copy computes the same function at any threshold under
// 1. For export only: to train on from it would be another parametrisation (METHODS.md 1.6).
std::vector<HostTensor> fold(const ParamSet& params, Device& device, double threshold);

// The matrix a layer stands for, with masks applied: W (out, in) of a TT layer, the table (rows, columns) of a TTM. Where
// the modes multiply to more than the true sizes, the padding is cut off.
HostTensor dense_weight(const RankLayer& layer, Device& device, double threshold);

}  // namespace comera
