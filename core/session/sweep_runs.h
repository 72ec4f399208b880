// The runs of a sweep in a store: found again by their config, with the steps that they are to do and their score at a step.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/session/sweep_plan.h"
#include "core/store/run_types.h"

namespace comera {

class RunReader;

struct SweepRun {
  RunRow row;
  int64_t steps = 0;  // to which it was extended; 0 = it was not
  // Whether nothing is left to train up to this step; 0 = the end of its config.
  bool is_over(int64_t step) const;
};

// Fingerprint of the training data of a config; "" = not known, and any will do.
using DataOf = std::function<std::string(const RunConfig&)>;
// A DataOf that opens each data set once.
DataOf fingerprints();

class SweepRuns {
 public:
  SweepRuns() = default;  // there is no store yet
  // Runs with the tag of the sweep. Forks are not among them, nor runs that were edited by hand.
  SweepRuns(const RunReader& reader, const Sweep& sweep);
  // Null = there is none. Number of threads, device and name do not count, unless they vary. Of several the one that is over, then the
  // newest.
  const SweepRun* find(const RunConfig& config, const DataOf& data_of) const;
  // Runs in the store that belong to no task, since the file has changed.
  std::vector<std::string> of_no_task(const std::vector<const RunConfig*>& tasks) const;

 private:
  std::string key_of(RunConfig config) const;
  std::vector<std::string> varied_;
  std::map<std::string, std::vector<SweepRun>> runs_;
};

// The last value of a metric up to a step (0 = of all); NaN = there is none.
double score_of(const RunReader& reader, const std::string& run, const std::string& metric, int64_t step);

}  // namespace comera
