// What is measured about once a second while a run trains, and stored as metrics of the step after which it was measured.
// Trainer's thread.
//
//   process_bytes                              resident memory of this process
//   device_used_bytes, device_total_bytes      of the device's memory, on a CPU of the machine's, with what others take
//   data_ms, forward_ms, backward_ms, update_ms  means of the steps since the last time, of those that were waited for:
//                                              of every step on a CPU, of profiled ones where results come late
#pragma once
#include <chrono>
#include <string>

#include "core/store/run_types.h"
#include "core/train/records.h"

namespace comera {

class Device;

// A metric that is a measurement: it does not repeat when a run is computed again. Those above, step_ms and eval_ms.
bool is_measured(const std::string& metric);

class RunSampler {
 public:
  explicit RunSampler(double every_s = 1) : every_s_(every_s) {}
  // After each step; `told`: the last one whose results are known. Values of that step, when a second is over; else none.
  // Throws Error(device).
  NamedValues after_step(const StepRecord& told, const Device& device);

 private:
  double every_s_;
  int64_t seen_ = 0;      // the last step
  bool sampled_ = false;  // once already
  int64_t timed_ = 0;     // steps in the sums
  double data_ = 0, forward_ = 0, backward_ = 0, update_ = 0, others_ = 0;
  bool shared_ = false;     // with other processes
  int64_t sent_bytes_ = 0;  // of the last step
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace comera
