#include "core/session/step_profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

Json phase_json(const StepProfile::Phase& phase) {
  return {{"name", phase.name}, {"median", phase.median}, {"p95", phase.p95}, {"mean", phase.mean}};
}

StepProfile::Phase phase_of(const Json& json) {
  return {json.value("name", ""), json.value("median", 0.0), json.value("p95", 0.0), json.value("mean", 0.0)};
}

}  // namespace

Json StepProfile::to_json() const {
  Json out = {{"steps", steps}, {"step_ms", phase_json(whole)}, {"phases", Json::array()}, {"ops", Json::array()}};
  if (rates.sgemm_gflops > 0) out["rates"] = {{"sgemm_gflops", rates.sgemm_gflops}, {"copy_gbs", rates.copy_gbs}};
  for (const Phase& phase : phases) out["phases"].push_back(phase_json(phase));
  for (const OpTime& op : ops)
    out["ops"].push_back({{"op", op.op}, {"calls", op.calls}, {"ms", op.ms}, {"gflop", op.gflop}, {"gbyte", op.gbyte}});
  return out;
}

StepProfile StepProfile::read(const std::string& body, int64_t step) try {
  const Json json = Json::parse(body);
  StepProfile out;
  out.step = step;
  out.steps = json.value("steps", int64_t{0});
  if (json.contains("step_ms")) out.whole = phase_of(json.at("step_ms"));
  for (const Json& phase : json.value("phases", Json::array())) out.phases.push_back(phase_of(phase));
  for (const Json& op : json.value("ops", Json::array()))
    out.ops.push_back({op.value("op", ""), op.value("calls", 0.0), op.value("ms", 0.0), op.value("gflop", 0.0), op.value("gbyte", 0.0)});
  const Json rates = json.value("rates", Json::object());
  out.rates = {rates.value("sgemm_gflops", 0.0), rates.value("copy_gbs", 0.0)};
  return out;
} catch (const nlohmann::json::exception&) {
  return {};
}

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
                add("ranks", [](const StepRecord& r) { return r.step_ms - r.data_ms - r.times.grad - r.times.refresh - r.times.update; })};
  out.whole = add("step", [](const StepRecord& r) { return r.step_ms; });
  out.ops = op_times(ops_, out.steps);
  out.rates = rates_;
  return out;
}

}  // namespace comera
