// What is told of a core that somebody looks at.
#pragma once
#include "core/session/snapshot.h"

namespace comera {

inline constexpr size_t kCoreBins = 41;  // odd: one of them is around 0

// Shape, norm and histogram of `values`, in any order. Values that are not finite are in no bin and make the norm so.
InspectedCore describe_core(std::string layer, int64_t core, int64_t step, std::vector<int64_t> shape, const std::vector<double>& values);
// Square root of the sum of squares.
double norm_of(const std::vector<double>& values);

}  // namespace comera
