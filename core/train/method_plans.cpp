#include "core/train/method_plans.h"

#include <set>

#include "core/base/error.h"
#include "core/methods/methods.h"

namespace comera {
namespace {

// Axes come from the recipe, and the settings of optimizers that it names itself; all others stay. An eps that was set stays, too.
void set_method(MethodConfig& method, const std::string& id) {
  static const std::set<std::string> kAxes = {"name",   "weights",   "stash",       "waist",    "optimizer",
                                              "update", "wta.ratio", "galore.rule", "coap.rule"};
  MethodConfig recipe = find_method(id).config, built_in;
  const bool own_eps = method.adam.eps != published_eps(method);
  const FieldValues shipped = field_values(fields_of(built_in));
  FieldValues values = field_values(fields_of(recipe));
  std::erase_if(values, [&](const auto& entry) { return !kAxes.contains(entry.first) && entry.second == shipped.at(entry.first); });
  values.erase("adam.eps");
  set_field_values(fields_of(method), values);
  if (!own_eps) method.adam.eps = published_eps(method);
}

// Values of a method that decide which recipe it is.
FieldValues telling_values(MethodConfig method) {
  FieldValues values = field_values(fields_of(method));
  values.erase("name");
  values.erase("adam.eps");
  return values;
}

std::string one_line(const std::string& what, const std::string& why) { return why.empty() ? what : what + ": " + why; }

}  // namespace

const std::vector<MethodName>& method_names() {
  static const std::vector<MethodName> kNames = [] {
    std::vector<MethodName> names;
    for (const MethodRecipe& recipe : methods()) names.push_back({recipe.id, recipe.title, recipe.summary});
    return names;
  }();
  return kNames;
}

RunConfig with_method(RunConfig config, const std::string& id) {
  set_method(config.method, id);
  return config;
}

std::string method_of(const RunConfig& config) {
  std::string found;
  const FieldValues values = telling_values(config.method);
  for (const MethodName& name : method_names())
    if (telling_values(with_method(config, name.id).method) == values) found = name.id;  // the last one names most settings itself
  return found;
}

MethodPlan plan_method(const RunConfig& config, const std::string& id) {
  const RunConfig changed = with_method(config, id);
  const MethodRecipe& recipe = find_method(id);
  MethodPlan plan{{recipe.id, recipe.title, recipe.summary}, {}, ""};
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
  for (const MethodName& name : method_names()) plans.push_back(plan_method(config, name.id));
  return plans;
}

bool takes_less(const MethodPlan& a, const MethodPlan& b) {
  if (!a.forecast || !b.forecast) return a.forecast && !b.forecast;
  return a.forecast->memory.total() < b.forecast->memory.total();
}

}  // namespace comera
