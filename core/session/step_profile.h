// Where the time of some steps goes, measured while a run trains: asked for by a ProfileCommand, stored as an event
// "profile", so live and stored runs tell it the same way. Between two of them nothing is measured. Trainer's thread.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/session/device_rates.h"
#include "core/train/records.h"

namespace comera {

class Engine;

struct StepProfile {
  struct Phase {
    std::string name;                      // data, forward, backward, refresh, update, ranks
    double median = 0, p95 = 0, mean = 0;  // ms a step
  };
  int64_t step = 0, steps = 0;  // the last one of so many
  std::vector<Phase> phases;    // in the order of a step; they add up to `whole`
  Phase whole;
  std::vector<OpTime> ops;  // the most ms first
  DeviceRates rates;        // of the device, measured in the same session; 0 = they were not

  Json to_json() const;                                            // the body of the event
  static StepProfile read(const std::string& body, int64_t step);  // the event's; what is missing stays empty
};

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
