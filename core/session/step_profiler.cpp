#include "core/session/step_profiler.h"

#include <algorithm>

#include "core/train/engine.h"

namespace comera {
namespace {

StepProfile::Phase phase(const char* name, std::vector<double> ms) {
  StepProfile::Phase out{name, 0, 0, 0};
  if (ms.empty()) return out;
  std::sort(ms.begin(), ms.end());
  const double last = static_cast<double>(ms.size() - 1);
  out.median = ms[static_cast<size_t>(0.5 * last + 0.5)];
  out.p95 = ms[static_cast<size_t>(0.95 * last + 0.5)];
  for (const double value : ms) out.mean += value / static_cast<double>(ms.size());
  return out;
}

}  // namespace

void StepProfiler::ask(int64_t steps, const DeviceRates& rates) {
  rates_ = rates;
  left_ = std::clamp<int64_t>(steps, 1, 10'000);
  ops_ = {};
  records_.clear();
}

void StepProfiler::before(Engine& engine) {
  if (left_ > 0) engine.profile(&ops_);
}

std::optional<StepProfile> StepProfiler::after(Engine& engine, const StepRecord& record) {
  if (left_ == 0) return {};
  records_.push_back(record);
  engine.profile(nullptr);
  if (--left_ > 0) return {};
  StepProfile out;
  out.step = record.step;
  out.steps = static_cast<int64_t>(records_.size());
  const auto add = [&](const char* name, auto ms_of) {
    std::vector<double> ms;
    for (const StepRecord& each : records_) ms.push_back(std::max(0.0, ms_of(each)));
    return phase(name, std::move(ms));
  };
  out.phases = {add("data", [](const StepRecord& r) { return r.data_ms; }),
                add("forward", [](const StepRecord& r) { return r.times.forward; }),
                add("backward", [](const StepRecord& r) { return r.times.grad - r.times.forward; }),
                add("refresh", [](const StepRecord& r) { return r.times.refresh; }),
                add("update", [](const StepRecord& r) { return r.times.update; }),
                add("ranks", [](const StepRecord& r) {
                  return r.step_ms - r.data_ms - r.times.grad - r.times.others - r.times.refresh - r.times.update;
                })};
  if (const size_t processes = record.shared.compute_ms.size(); processes > 1) {
    out.phases.insert(out.phases.begin() + 3, add("others", [](const StepRecord& r) { return r.times.others; }));
    for (size_t process = 0; process < processes; ++process)
      out.processes_ms.push_back(add("compute", [process](const StepRecord& r) { return r.shared.compute_ms.at(process); }).mean);
  }
  out.whole = add("step", [](const StepRecord& r) { return r.step_ms; });
  out.ops = op_times(ops_, out.steps);
  out.rates = rates_;
  return out;
}

}  // namespace comera
