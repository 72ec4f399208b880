// Where the time of some steps goes, as it is stored in an event "profile": live and stored runs tell it the same way.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/session/device_rates.h"

namespace comera {

struct StepProfile {
  struct Phase {
    std::string name;                      // data, forward, backward, others, refresh, update, ranks
    double median = 0, p95 = 0, mean = 0;  // ms a step
  };
  int64_t step = 0, steps = 0;  // the last one of so many
  std::vector<Phase> phases;    // in the order of a step; they add up to `whole`
  Phase whole;
  std::vector<double> processes_ms;  // of each process: mean ms a step for its parts of the batch; empty where one trains
  std::vector<OpTime> ops;           // the most ms first
  DeviceRates rates;                 // of the device, measured in the same session; 0 = they were not

  Json to_json() const;                                            // the body of the event
  static StepProfile read(const std::string& body, int64_t step);  // the event's; what is missing stays empty
};

}  // namespace comera
