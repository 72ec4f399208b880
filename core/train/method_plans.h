// What the same run takes under each method of the table (core/config/named_methods.h), known from dry runs before anything is allocated.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/named_methods.h"
#include "core/train/forecast.h"

namespace comera {

// The same run with another method (set_method).
RunConfig with_method(RunConfig config, const std::string& name);

struct MethodPlan {
  std::string id, title;             // of the method
  std::optional<Forecast> forecast;  // none: refused
  std::string refused;               // why, in one line; "" = planned
};
// A dry run of the step; may take seconds for a large model. Throws Error(not_found), else says in `refused` what is wrong.
MethodPlan plan_method(const RunConfig& config, const std::string& id);
// One a name, in the order of menus.
std::vector<MethodPlan> method_plans(const RunConfig& config);
// Order by peak, smallest first; refused ones are behind all others.
bool takes_less(const MethodPlan& a, const MethodPlan& b);

}  // namespace comera
