// The trained parameters of a matrix under LoRA (METHODS.md 4.1): the factors A (r, I) and B (O, r); of a table (I, O), too.
#pragma once
#include <vector>

#include "core/layers/param.h"

namespace comera {

struct LoraFactors {
  Param *a, *b;
};

// Those of a model, in building order; empty where it has none.
std::vector<LoraFactors> lora_factors(ParamSet& params);

}  // namespace comera
