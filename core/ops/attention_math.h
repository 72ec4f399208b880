// Exponentials of attention's scores.
#pragma once
#include "core/ops/fast_math.h"

namespace comera {

// exp(score - largest) or exp(score - log of the sum). On a GPU by the unit for 2^x: an error of 2^-22 and of 2^-24 |x|, while products
// round the result to 11 bits.
HD float exp_of_score(float x) {
#ifdef __CUDA_ARCH__
  return fast::exp2_normal(x * 1.442695041f);
#else
  return fast::exp(x);
#endif
}

// exp(score - log of the row's sum), by `exp`. A stash that rounds queries and keys gives other scores than those of the sum: an outlier
// that its range cuts off would overflow. So what is clearly above 1 is 1; NaN stays.
template <class T>
HD T limited_probability(T p) {
  return p > T(1.01) ? T(1) : p;
}
template <class T>
HD T probability_again(T score, T log_sum) {
  return limited_probability(fast::exp(score - log_sum));
}

}  // namespace comera
