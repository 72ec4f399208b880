// A plan that needs more memory than is free, and changes of settings that would make it fit. Found by dry runs of the training step, which
// allocate nothing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/train/forecast.h"

namespace comera::studio {

struct Remedy {             // a change of one setting
  std::string path, title;  // "train.batch", "Batch"
  int64_t from = 0, to = 0;
  int64_t bytes = 0;  // planned peak after the change
  bool fits = false;
};

struct MemoryMisfit {
  MemoryByPurpose planned;
  int64_t available = 0;
  std::vector<Remedy> remedies;  // at most two; those that fit come first
};

// Null if the plan fits, or if `config` cannot be planned. Never throws. Takes several dry runs, too long for a frame.
std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config);
// The same with a known plan of `config`, and another amount of free memory.
std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config, const MemoryByPurpose& planned, int64_t available);

}  // namespace comera::studio
