#include "core/session/step_profile.h"

#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace comera {
namespace {

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
  if (!processes_ms.empty()) out["processes_ms"] = processes_ms;
  for (const OpTime& op : ops)
    out["ops"].push_back({{"op", op.op}, {"calls", op.calls}, {"ms", op.ms}, {"gflop", op.gflop}, {"gbyte", op.gbyte}});
  return out;
}

StepProfile StepProfile::read(const std::string& body, int64_t step) try {
  const Json json = parse_valid_json(body);
  StepProfile out;
  out.step = step;
  out.steps = json.value("steps", int64_t{0});
  if (json.contains("step_ms")) out.whole = phase_of(json.at("step_ms"));
  for (const Json& phase : json.value("phases", Json::array())) out.phases.push_back(phase_of(phase));
  out.processes_ms = json.value("processes_ms", std::vector<double>());
  for (const Json& op : json.value("ops", Json::array()))
    out.ops.push_back({op.value("op", ""), op.value("calls", 0.0), op.value("ms", 0.0), op.value("gflop", 0.0), op.value("gbyte", 0.0)});
  const Json rates = json.value("rates", Json::object());
  out.rates = {rates.value("sgemm_gflops", 0.0), rates.value("copy_gbs", 0.0)};
  return out;
} catch (const nlohmann::json::exception&) {
  return {};
}

}  // namespace comera
