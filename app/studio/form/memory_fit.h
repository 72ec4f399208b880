// A plan that needs more memory than is free, and settings that would make it fit. Found by dry runs of the training step;
// nothing is allocated.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/train/forecast.h"

namespace comera::studio {

struct Remedy {             // another value of a setting
  std::string path, title;  // "train.batch", "Batch"
  int64_t from = 0, to = 0;
  int64_t bytes = 0;  // planned peak with it
  bool fits = false;
};

struct MemoryMisfit {
  MemoryByPurpose planned;
  int64_t available = 0;
  std::vector<Remedy> remedies;  // at most two, the most effective first
};

// Null when the plan fits, or when `config` cannot be planned at all. Never throws. Takes some dry runs: not in a frame.
std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config);
// The same for another amount of free memory; the plan of `config` is known.
std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config, const MemoryByPurpose& planned, int64_t available);

}  // namespace comera::studio
