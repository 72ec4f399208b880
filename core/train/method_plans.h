// What the same run takes under each method of the table (core/methods/methods.h), known from dry runs before anything is allocated.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/train/forecast.h"

namespace comera {

struct MethodName {
  std::string id, title, summary;  // of the recipe: "comera+adam8bit", for menus, one line
};
const std::vector<MethodName>& method_names();  // in display order

// The same run with another method: only its axes change, and the settings that make the recipe what it is. Throws Error(not_found).
RunConfig with_method(RunConfig config, const std::string& id);
// The recipe whose axes the config has; "" = none.
std::string method_of(const RunConfig& config);

struct MethodPlan {
  MethodName method;
  std::optional<Forecast> forecast;  // none: refused
  std::string refused;               // why, in one line; "" = planned
};
// A dry run of the step; may take seconds for a large model. Throws Error(not_found), else says in `refused` what is wrong.
MethodPlan plan_method(const RunConfig& config, const std::string& id);
// One a recipe, in display order.
std::vector<MethodPlan> method_plans(const RunConfig& config);
// Order by peak, smallest first; refused ones are behind all others.
bool takes_less(const MethodPlan& a, const MethodPlan& b);

}  // namespace comera
