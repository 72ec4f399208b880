#include "core/store/config_diff.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace comera {
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

void collect(const Json& json, const std::string& path, Leaves& out) {
  if (!json.is_object() || json.empty()) {
    out.emplace_back(path, json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  for (const auto& [key, value] : json.items()) collect(value, path.empty() ? key : path + "." + key, out);
}

}  // namespace

std::vector<ConfigDifference> diff_configs(const std::string& a, const std::string& b, bool only_different) {
  Leaves left, right;
  collect(parse_json(a, "first config"), "", left);
  collect(parse_json(b, "second config"), "", right);
  std::map<std::string, std::string> rest(right.begin(), right.end());
  std::vector<ConfigDifference> out;
  for (const auto& [path, value] : left) {
    const auto found = rest.find(path);
    const std::string other = found == rest.end() ? "" : found->second;
    if (found != rest.end()) rest.erase(found);
    if (value != other || !only_different) out.push_back({path, value, other, value == other});
  }
  for (const auto& [path, value] : right)
    if (rest.count(path)) out.push_back({path, "", value, false});
  return out;
}

}  // namespace comera
