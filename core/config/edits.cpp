// Live changes of a config.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/numbers.h"
#include "core/config/config.h"
#include "core/config/renamed_settings.h"

namespace comera {
namespace {
bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

[[noreturn]] void refuse(const std::string& path, const std::string& why, const std::string& hint = "") {
  throw Error(ErrorCode::usage, "cannot change " + path, why, hint);
}

constexpr double kMostRank = 1e9;

double number_of(const std::string& path, const std::string& value) {
  const auto number = read_decimal(value);
  if (!number || !number->rest.empty() || number->value < 0)
    refuse(path, "'" + value + "' is not a number of 0 or more", "for example " + path + "=0.5, or null for 1");
  return number->value;
}

int64_t rank_of(const std::string& path, const std::string& value) {
  const auto number = read_decimal(value);
  if (!number || !number->rest.empty() || number->value < 0 || number->value > kMostRank || number->value != std::floor(number->value))
    refuse(path, "'" + value + "' is not a number of ranks: a whole number from 1 to 1e9",
           "for example " + path + "=8, or null for no cap");
  return std::max<int64_t>(1, static_cast<int64_t>(number->value));
}
}  // namespace

std::string apply_edit(RunConfig& config, RankOverrides& overrides, const std::string& given_path, const std::string& value) {
  const std::string path = current_path(given_path);
  if (starts_with(path, "rank.cap.")) {
    const std::string bond = path.substr(9);
    const auto found = overrides.caps.find(bond);
    const std::string old = found == overrides.caps.end() ? "null" : std::to_string(found->second);
    if (value == "null")
      overrides.caps.erase(bond);
    else
      overrides.caps[bond] = rank_of(path, value);
    return old;
  }
  if (starts_with(path, "rank.weight.")) {
    const std::string layer = path.substr(12);
    const auto found = overrides.weights.find(layer);
    const std::string old = found == overrides.weights.end() ? "null" : Json(found->second).dump();
    if (value == "null")
      overrides.weights.erase(layer);
    else
      overrides.weights[layer] = number_of(path, value);
    return old;
  }
  RunConfig changed = config;
  const std::optional<FieldEntry> entry = fields_find(fields_of(changed), path);
  if (!entry) {
    std::vector<std::string> live;
    for (const FieldEntry& known : all_settings())
      if (known.info.is_live()) live.push_back(known.path);
    const std::string near = nearest_name(path, live);
    refuse(path, "it is not a known setting", near.empty() ? "" : "did you mean '" + near + "'?");
  }
  if (!entry->info.is_live()) refuse(path, "it is fixed when a run starts", "fork the run with --set " + path + "=" + value);
  std::vector<Problem> problems;
  fields_set(fields_of(changed), path, value, problems);
  if (!problems.empty()) refuse(path, problems.front().text);
  if (starts_with(path, "method.comera.")) changed.method.comera.only_target(path.substr(14));
  if (path == "method.lora.rank") {
    changed.method.lora.keep_scale(config.method.lora.rank);
    fields_set(fields_of(changed), "method.lora.alpha", Json(changed.method.lora.alpha).dump(), problems);
    if (!problems.empty()) refuse(path, "method.lora.alpha would change with it, which " + problems.front().text);
  }
  config = changed;
  return entry->value;
}

}  // namespace comera
