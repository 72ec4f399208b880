#include "core/session/run_sampler.h"

#include "core/config/metrics.h"
#include "core/ops/device.h"
#include "core/train/system_memory.h"

namespace comera {

bool is_measured(const std::string& metric) {
  const MetricInfo* info = find_metric(metric);
  return info && info->measured;
}

NamedValues RunSampler::after_step(const StepRecord& told, const Device& device) {
  if (told.step <= seen_) return {};
  seen_ = told.step;
  if (told.times.grad > 0) {
    ++timed_;
    data_ += told.data_ms;
    forward_ += told.times.forward;
    backward_ += told.times.grad - told.times.forward;
    update_ += told.times.refresh + told.times.update;
    others_ += told.times.others;
  }
  shared_ = told.shared.compute_ms.size() > 1;
  sent_bytes_ = told.shared.sent_bytes;
  const auto now = std::chrono::steady_clock::now();
  if (sampled_ && std::chrono::duration<double>(now - last_).count() < every_s_) return {};
  last_ = now;
  sampled_ = true;
  NamedValues values;
  if (const int64_t resident = resident_bytes(); resident > 0) values.emplace_back("process_bytes", static_cast<double>(resident));
  if (const MemoryLevel level = memory_of(device); level.total > 0) {
    values.emplace_back("device_used_bytes", static_cast<double>(level.used));
    values.emplace_back("device_total_bytes", static_cast<double>(level.total));
  }
  if (timed_ > 0) {
    const auto count = static_cast<double>(timed_);
    values.emplace_back("data_ms", data_ / count);
    values.emplace_back("forward_ms", forward_ / count);
    values.emplace_back("backward_ms", backward_ / count);
    values.emplace_back("update_ms", update_ / count);
    if (shared_) values.emplace_back("others_ms", others_ / count);
  }
  if (shared_) values.emplace_back("sent_bytes", static_cast<double>(sent_bytes_));
  timed_ = 0;
  data_ = forward_ = backward_ = update_ = others_ = 0;
  return values;
}

}  // namespace comera
