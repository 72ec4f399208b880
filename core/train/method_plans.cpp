#include "core/train/method_plans.h"

#include "core/base/error.h"
#include "core/config/named_methods.h"

namespace comera {
namespace {

std::string one_line(const std::string& what, const std::string& why) { return why.empty() ? what : what + ": " + why; }

}  // namespace

RunConfig with_method(RunConfig config, const std::string& name) {
  set_method(config, name);
  return config;
}

MethodPlan plan_method(const RunConfig& config, const std::string& id) {
  const RunConfig changed = with_method(config, id);
  MethodPlan plan{id, changed.method.name, {}, ""};
  const std::vector<Problem> problems = config_problems(changed);
  if (!problems.empty()) {
    plan.refused = one_line(problems.front().path, problems.front().text);
    return plan;
  }
  try {
    plan.forecast = make_forecast(changed);
  } catch (const Error& error) {
    plan.refused = one_line(error.what(), error.why());
  } catch (const std::exception& error) {
    plan.refused = error.what();
  }
  return plan;
}

std::vector<MethodPlan> method_plans(const RunConfig& config) {
  std::vector<MethodPlan> plans;
  for (const NamedMethod& name : named_methods()) plans.push_back(plan_method(config, name.id));
  return plans;
}

bool takes_less(const MethodPlan& a, const MethodPlan& b) {
  if (!a.forecast || !b.forecast) return a.forecast && !b.forecast;
  return a.forecast->memory.total() < b.forecast->memory.total();
}

}  // namespace comera
