// Measures a StepProfile while a run trains, when a ProfileCommand asks for it; otherwise nothing is measured. Trainer's thread.
#pragma once
#include <optional>
#include <vector>

#include "core/ops/device.h"
#include "core/session/step_profile.h"
#include "core/train/records.h"

namespace comera {

class Engine;

class StepProfiler {
 public:
  // Counts from the next step on; an unfinished count is given up. `rates`: go with what was counted.
  void ask(int64_t steps, const DeviceRates& rates);
  // Around every step of the trainer. The profile when its last step is done.
  void before(Engine& engine);
  std::optional<StepProfile> after(Engine& engine, const StepRecord& record);

 private:
  int64_t left_ = 0;
  OpProfile ops_;
  DeviceRates rates_;
  std::vector<StepRecord> records_;
};

}  // namespace comera
