// Probabilities of attention that backward computes again.
#pragma once
#include "core/ops/fast_math.h"

namespace comera {

// exp(score - log of the row's sum). A stash that rounds queries and keys gives other scores than those of the sum: an outlier that its
// range cuts off would overflow. So what is clearly above 1 is 1; NaN stays.
template <class T>
HD T probability_again(T score, T log_sum) {
  const T p = fast::exp(score - log_sum);
  return p > T(1.01) ? T(1) : p;
}

}  // namespace comera
