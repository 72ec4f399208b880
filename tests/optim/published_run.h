// Values of a published run that a golden file holds, and how far ours are from them.
#pragma once
#include "tests/layers/golden.h"
#include "tests/optim/harness.h"

namespace comera::test {

// Entry `index` of the first axis.
inline Values part(const SafetensorsFile& file, const std::string& name, int64_t index) {
  const Values all = file.values(name);
  const int64_t count = static_cast<int64_t>(all.size()) / file.entry(name).shape[0];
  return {all.begin() + index * count, all.begin() + (index + 1) * count};
}

// The largest difference, relative to the largest published value where one is not 0.
inline double relative(const Values& ours, const Values& theirs) {
  double largest = 0;
  for (const double value : theirs) largest = std::max(largest, std::fabs(value));
  return largest_difference(ours, theirs) / (largest > 0 ? largest : 1);
}

}  // namespace comera::test
