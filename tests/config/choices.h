// Values of an axis, for tests that combine them all: a new value is in them by its row. And settings small enough for tiny nets.
#pragma once
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/config/config.h"

namespace comera {

inline std::vector<const char*> choices_of(const char* path) {
  const FieldEntry* setting = find_setting(path);
  CHECK(setting && !setting->info.choices.empty(), path << " has no choices");
  std::vector<const char*> ids;
  for (const Choice& choice : setting->info.choices) ids.push_back(choice.id);
  return ids;
}

// The setting that says what an optimizer keeps, where it has one: the rule of projected gradients, or the format of momentum.
inline const FieldEntry* variants_of(const std::string& optimizer) {
  for (const char* name : {".rule", ".momentum_format"})
    if (const FieldEntry* setting = find_setting("method." + optimizer + name)) return setting;
  return nullptr;
}

// The name of a test, which has letters, digits and _ alone.
inline std::string test_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

// Of a test whose parameter is a tuple of choices.
inline constexpr auto name_of_choices = [](const auto& info) {
  return std::apply(
      [](const auto& first, const auto&... rest) { return test_name((std::string(first) + ... + ("_" + std::string(rest)))); }, info.param);
};

// Every rank of an optimizer, gap between projections and least size of 8-bit states that makes a tiny net use what it is to test.
inline void shrink(MethodConfig& config) {
  FieldValues small;
  for (const FieldEntry& entry : fields_list(fields_of(static_cast<OptimizerSettings&>(config)))) {
    if (entry.path.ends_with(".rank")) small[entry.path] = int64_t{4};
    if (entry.path.ends_with(".gap")) small[entry.path] = int64_t{3};
    if (entry.path.ends_with(".min_size")) small[entry.path] = int64_t{32};
  }
  set_field_values(fields_of(static_cast<OptimizerSettings&>(config)), small);
}

// Settings with which AdamW's learning rates train a small net under the optimizer that is chosen; the factor on those of weights that is
// left to do.
inline double take_rates_of_adamw(MethodConfig& config) {
  config.galore.scale = config.grass.scale = 1;
  config.adalomo.least_rms = 1;
  config.came.correct_residual = true;         // the published first steps are 11 times as long
  return config.optimizer == "lomo" ? 20 : 1;  // steps as long as the gradient
}

}  // namespace comera
