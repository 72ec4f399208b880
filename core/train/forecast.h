// What a config will take, known from a dry run before anything is allocated.
#pragma once
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/ops/work.h"
#include "core/records/sizes.h"
#include "core/tensor/memory.h"
#include "core/train/system_memory.h"

namespace comera {

class Communicator;

struct ForecastLayer {
  std::string name;
  std::vector<int64_t> in_modes, out_modes, ranks;  // ranks r_0..r_K
  int64_t entries = 0, dense_entries = 0;
};

struct Forecast {
  int64_t parameters = 0;        // all values of the model
  int64_t trainable = 0;         // without frozen parameters
  int64_t tensorised = 0;        // TT and TTM cores
  int64_t rank_values = 0;       // rank parameters
  int64_t dense_equivalent = 0;  // the same model with dense matrices
  int64_t tensorised_dense = 0;  // the matrices and tables the cores stand for
  double value_bytes = 4;
  MemoryByPurpose memory;  // planned peak
  int64_t available = 0;   // bytes that the device of the run can still give
  Work work;               // of one training step; of several processes: of one of them
  int64_t sent_bytes = 0;  // gradients that a process sends to all others in a step
  std::vector<ForecastLayer> layers;

  double model_compression() const { return static_cast<double>(dense_equivalent) / static_cast<double>(parameters > 0 ? parameters : 1); }
  double tensorised_compression() const {
    return tensorised > 0 ? static_cast<double>(tensorised_dense) / static_cast<double>(tensorised) : 1;
  }
};

// `ranks`: of the model's tensor trains, where they are not the config's. `others`: of one of several processes (PlannedProcesses).
Forecast make_forecast(const RunConfig& config, const LiveRanks& ranks = {}, Communicator* others = nullptr);
// Throws Error(memory) when the plan does not fit in so many bytes: nothing has been taken then.
void check_fits(const MemoryByPurpose& planned, int64_t available);

}  // namespace comera
