#include "core/train/step_program.h"

#include "core/base/error.h"

namespace comera {

void StepProgram::forget() {
  captured_.reset();
  eager_runs_ = 0;
}

Work StepProgram::plan() {
  forget();
  Ops& ops = device_.ops();
  ops.dry = true;
  ops.work = {};
  arena_.record();
  try {
    calls_(arena_);
  } catch (...) {
    ops.dry = false;
    throw;
  }
  ops.dry = false;
  arena_.plan();
  return ops.work;
}

void StepProgram::run(bool op_by_op) {
  if (captured_ && !op_by_op) return captured_->launch();
  arena_.rewind();
  if (op_by_op || !device_.captures() || eager_runs_ < kEagerRuns) {
    calls_(arena_);
    if (eager_runs_ < kEagerRuns) ++eager_runs_;
    return;
  }
  device_.begin_capture();
  try {
    calls_(arena_);
  } catch (...) {
    device_.abandon_capture();
    throw;
  }
  captured_ = device_.end_capture();
  ++captures_;
  captured_->launch();
}

}  // namespace comera
