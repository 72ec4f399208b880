// Trains the runs of a sweep, several at once, each in a process of its own (jobs.h).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "app/cli/jobs.h"
#include "app/cli/planned_sweep.h"
#include "core/session/sweep_runs.h"

namespace comera::cli {

// One process at a time trains the runs of a sweep in a store; its jobs hold the lock as well, so after a kill the next start waits until
// they have ended. Tasks lock a byte each. The file STORE-sweeps may be deleted when no sweep runs.
class SweepLock {
 public:
  SweepLock(const Context& context, const std::string& store, const SweepPlan& plan);
  ~SweepLock();
  SweepLock(const SweepLock&) = delete;
  int file() const { return file_; }

 private:
  int file_ = -1;
};

struct SweepFailure {
  std::string run, name, reason;
  int code = 0;
  // Whether it would fail again: for its config or its data, without a device, without memory.
  bool lasting() const;
};

class SweepTraining {
 public:
  SweepTraining(const Context& context, const SweepOptions& options, const SweepPlan& plan);

  // Trains rung by rung, until nothing is left to train or a signal stops it.
  void all();

  SweepRuns stored() const;
  const DataOf& data_of() const { return data_of_; }
  const std::string& store() const { return store_; }
  const std::vector<SweepFailure>& failures() const { return failures_; }
  size_t rung_of(size_t point) const { return rungs_[point]; }  // that it was trained to last
  size_t rungs_decided() const { return decided_; }             // after which it is known which points continue

 private:
  void note_changes();
  // All runs of the points up to the rung. False: some may still get there, so nothing can be decided.
  bool train(const std::vector<size_t>& points, size_t rung);
  bool train(const std::vector<const RunConfig*>& tasks, int64_t step, bool first);
  void start(Jobs& jobs, size_t number, const RunConfig& config, const SweepRun* run, int64_t step);
  void take(const JobEnd& end, const std::string& place, const std::string& name);
  std::vector<size_t> best_points(const std::vector<size_t>& points, size_t rung);

  const Context& context_;
  const SweepOptions& options_;
  const SweepPlan& plan_;
  std::string store_;
  SweepLock lock_;
  DataOf data_of_;
  std::vector<SweepFailure> failures_;
  std::vector<size_t> rungs_;  // by point
  size_t decided_ = 0;
};

}  // namespace comera::cli
