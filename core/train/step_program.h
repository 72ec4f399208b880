// One program of a step (gradients, update, or scores), from its plan to its replay. The calls of a program are the same
// in every run, its temporaries have the same addresses, and what changes from step to step it reads in device memory:
//   plan     the calls are made dry: shapes are checked, work is counted, temporaries get their places.
//   eager    the first runs after a plan compute op by op. They are steps like all others, so none of them has to be
//            undone; what a library loads or chooses when it is first asked is settled then.
//   capture  where the device captures, the calls of the next run are kept as a program of the device,
//   replay   which from then on is launched instead of making the calls again.
// A new plan, for tensors of other shapes or at other addresses, begins all over. Live changes do not. One thread: the
// trainer's.
#pragma once
#include <functional>
#include <memory>

#include "core/ops/device.h"

namespace comera {

class StepProgram {
 public:
  // In the first, libraries load and choose; the second is the first that computes as all later ones do, so that a fault
  // of what was chosen shows where it still has the name of an op.
  static constexpr int kEagerRuns = 2;

  // `calls` makes the op calls, temporaries from the given arena. Within it neither the host reads what the device
  // computed, nor does anything depend on a value that changes from step to step. `device` must outlive this.
  StepProgram(Device& device, std::function<void(Arena&)> calls) : device_(device), calls_(std::move(calls)) {}
  StepProgram(const StepProgram&) = delete;

  // Gives back what was captured: before the memory that it names goes.
  void forget();
  // forget(), and a new plan; returns the work of one run. The arena has no memory then: attach() it.
  Work plan();
  // One run. `op_by_op`: the calls are made whatever has been captured, for a profile of the ops; the result is the same.
  void run(bool op_by_op = false);

  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  int64_t captures() const { return captures_; }  // so far, over all plans

 private:
  Device& device_;
  const std::function<void(Arena&)> calls_;
  Arena arena_;
  std::unique_ptr<CapturedProgram> captured_;
  int eager_runs_ = 0;  // since the plan
  int64_t captures_ = 0;
};

}  // namespace comera
