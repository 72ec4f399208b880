// LTE between two steps (METHODS.md 4.2): after every `merge_every` steps the mean of the heads goes into the matrices. All results are
// waited for then, so that the evaluation of this step uses the new matrices on every device.
#pragma once
#include <vector>

#include "core/layers/lte.h"
#include "core/methods/method.h"

namespace comera {

class Lte final : public Method {
 public:
  Lte(const LteConfig& config, ParamSet& params) : config_(config), matrices_(lte_matrices(params)) {}

  void attach(TrainingRun& run) override { run_ = &run; }
  bool waits_for(int64_t step) const override { return step % config_.merge_every == 0; }
  bool calls_differ(int64_t parts) const override { return heads_of_part(config_.heads, 0, parts).count < config_.heads; }
  std::vector<Param*> blocks_of(int64_t parts) const override;
  int64_t read_every() const override { return config_.merge_every; }
  void after_step(int64_t step, const StepResults& results, const std::vector<double>& mail) override;

  // W += mean over the heads of s (B A - B' A'), then A' = A and B' = B.
  void merge(Ops& ops) const;
  // A is drawn again, B, A' and B' are 0: W is the whole matrix then. A merge comes before it.
  void reset(Device& device, uint64_t seed, int64_t step) const;

 private:
  const LteConfig config_;
  const std::vector<LteMatrix> matrices_;
  TrainingRun* run_ = nullptr;
};

}  // namespace comera
