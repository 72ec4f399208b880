// The parameters of a matrix under LTE (METHODS.md 4.2): W (O, I), and of each of H heads the factors A (r, I) and B (O, r) with the copies
// that the last merge added to W.
#pragma once
#include <vector>

#include "core/layers/param.h"

namespace comera {

struct LteMatrix {
  Param* w;                    // (O, I), frozen: only merges change it
  Param *a, *b;                // (H, r, I) and (H, O, r), trained
  Param *merged_a, *merged_b;  // of the same shapes, frozen; zeros before the first merge
};

// Those of a model, in building order.
std::vector<LteMatrix> lte_matrices(ParamSet& params);

// The matrix of one head in a tensor (H, rows, columns).
inline Tensor head_of(const Tensor& all, int64_t head) { return all.rows(head, 1).view({all.size(1), all.size(2)}); }

}  // namespace comera
