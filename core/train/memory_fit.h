// Settings with which a run fits into a number of bytes. Found by dry runs of the training step, which allocate nothing and take some
// milliseconds each.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/config/config.h"

namespace comera {

// Planned peak in bytes; nullopt if the config cannot be planned. Never throws.
std::optional<int64_t> planned_bytes(const RunConfig& config);

struct FittedValue {
  int64_t value = 0;
  int64_t bytes = 0;  // planned peak with it
  bool fits = false;
};
using ConfigWith = std::function<RunConfig(int64_t value)>;

// The first of `values` whose plan fits into `bytes`; if none fits, that with the smallest plan. A value that cannot be planned ends the
// search; nullopt if that is the first.
std::optional<FittedValue> first_that_fits(const ConfigWith& with, const std::vector<int64_t>& values, int64_t bytes);
// The largest of low..high whose plan fits, by bisection, since a plan grows with a rank; `low` if none fits. Where a plan does not grow
// everywhere (tensors that become large enough for 8-bit moments) it fits, and with one more it does not. nullopt if `low` cannot be
// planned.
std::optional<FittedValue> largest_that_fits(const ConfigWith& with, int64_t low, int64_t high, int64_t bytes);

struct FittedConfig {
  RunConfig config;   // with its rank and number of micro-batches
  int64_t bytes = 0;  // planned peak
  bool fits = false;  // false: no rank and number of micro-batches does, and this is the smallest plan found
};

// The largest method in `bytes` that trains the same batches. The batch (train.batch) stays, so that every step sees the same examples;
// changed are train.micro_batches and the rank of the method (rank_setting.h), in this order:
//   1. the fewest micro-batches with which the configured rank fits;
//   2. then the largest rank, at least the configured one, that fits with as many micro-batches;
//   3. if the configured rank fits with no number of micro-batches: the largest rank that fits with any, and for it the fewest
//      micro-batches. Many micro-batches are not always the smallest plan: from two on, gradients are summed in memory of their own.
// `keeps_rank`: steps 2 and 3 are left out, as for a method without a rank. nullopt if the config cannot be planned.
std::optional<FittedConfig> fit_to_memory(const RunConfig& config, int64_t bytes, bool keeps_rank = false);

}  // namespace comera
