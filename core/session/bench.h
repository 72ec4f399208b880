// Measurements of the training step itself: no store, no files. Used by `comera bench` and experiments/bench.
#pragma once
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/session/device_rates.h"

namespace comera {

struct StepBench {
  int64_t steps = 0;
  double ms_median = 0, ms_min = 0, ms_p95 = 0;
  double grad_ms = 0, update_ms = 0;  // medians
  double gflop = 0;                   // GEMM work a step
  double gemm_gbyte = 0, gbyte = 0;   // read and written by GEMMs, and by everything else, a step
  DeviceRates rates;                  // measured in the same run
  double limit_ms = 0;                // gflop / sgemm rate
  double traffic_ms = 0;              // gbyte / copy rate
  double bandwidth_ms = 0;            // all traffic / copy rate: no step whose tensors exceed the caches is faster
  double tokens_per_s = 0;
  int64_t steady_allocations = -1;  // heap allocations in a steady step, -1 = not counted in this build
  double planned_bytes = 0, measured_bytes = 0, peak_rss_bytes = 0;
  std::vector<OpTime> ops;  // where the time goes, largest first
};

// Times whole steps of a config on made-up data of its shapes (all positions in use), after `warmup` steps. On a device
// whose results come late steps follow each other as in training. Ops, and the phases of a step there, are timed in other
// steps, computed op by op: inside of a captured step nothing but the whole can be timed.
StepBench bench_step(const RunConfig& config, int64_t steps, int64_t warmup);

struct GemmRate {
  std::string what;
  int64_t m = 0, k = 0, n = 0;
  bool ta = false, tb = false;
  double ms = 0, gflops = 0, share = 0;  // share of the 2048^3 rate
};
// The products of a config's layers at its token count, against 2048^3, in the precision of train.matmul.
std::vector<GemmRate> bench_gemm(const RunConfig& config);

}  // namespace comera
