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

inline std::vector<std::tuple<>> combinations() { return {{}}; }

// Of one choice of each list, as a tuple.
template <class... More>
auto combinations(const std::vector<const char*>& first, const More&... more) {
  const auto behind = combinations(more...);
  std::vector<decltype(std::tuple_cat(std::tuple<const char*>(), behind.front()))> all;
  for (const char* choice : first)
    for (const auto& rest : behind) all.push_back(std::tuple_cat(std::tuple(choice), rest));
  return all;
}

// The same, where the last three are weights, stash and optimizer. Under a sanitizer without those that run only lines of others: every
// optimizer with the exact stash and with tensor trains in int8, factors beside frozen matrices with AdamW and 8-bit Adam.
template <class... Lists>
auto methods_of(const Lists&... lists) {
  auto all = combinations(lists...);
#ifdef COMERA_SANITIZED
  std::erase_if(all, [](const auto& choices) {
    constexpr size_t kCount = std::tuple_size_v<std::decay_t<decltype(choices)>>;
    MethodConfig method;
    method.weights = std::get<kCount - 3>(choices);
    const std::string stash = std::get<kCount - 2>(choices), optimizer = std::get<kCount - 1>(choices);
    if (stash == "bf16" || (stash != "exact" && method.weights != "tt")) return true;
    return method.chosen_weights().factors && optimizer != "adamw" && optimizer != "adam8bit";
  });
#endif
  return all;
}

// Sets every setting of optimizers with this last name and type.
inline void set_each(MethodConfig& config, const std::string& name, const FieldValue& value) {
  FieldValues set;
  auto& settings = static_cast<OptimizerSettings&>(config);
  for (const auto& [path, now] : field_values(fields_of(settings)))
    if (path.ends_with("." + name) && now.index() == value.index()) set[path] = value;
  set_field_values(fields_of(settings), set);
}

// Every rank of an optimizer, gap between projections and least size of 8-bit states that makes a tiny net use what it is to test.
inline void shrink(MethodConfig& config) {
  set_each(config, "rank", int64_t{4});
  set_each(config, "gap", int64_t{3});
  set_each(config, "min_size", int64_t{32});
}

// Settings with which AdamW's learning rates train a small net under the optimizer that is chosen; the factor on those of weights that is
// left to do.
inline double take_rates_of_adamw(MethodConfig& config) {
  set_each(config, "scale", 1.0);
  config.adalomo.least_rms = 1;
  config.came.correct_residual = true;          // the published first steps are 11 times as long
  if (config.optimizer == "adagrad") return 3;  // steps that become shorter
  return config.optimizer == "lomo" ? 20 : 1;   // as long as the gradient
}

}  // namespace comera
