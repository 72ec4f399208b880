#include "core/config/renamed_settings.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace comera {
namespace {

constexpr RenamedSetting kRenamed[] = {
    {"train.lr_rest", "train.lr"},
    {"train.lr_floor", "train.lr_final_fraction"},
    {"method.comera.prune", "method.comera.train_ranks"},
    {"method.comera.cut_share", "method.comera.prune_dead_share"},
    {"method.comera.cut_every", "method.comera.prune_every"},
    {"method.comera.late_push", "method.comera.late_weight"},
    {"method.comera.late_ce_weight", "method.comera.late_loss_weight"},
};

Json renamed(const Json& group, const std::string& prefix, const std::string& source_name) {
  if (!group.is_object()) return group;
  Json out = Json::object();
  for (const auto& [key, value] : group.items()) {
    const std::string old_path = prefix + key, path = current_path(old_path);
    const std::string name = path.substr(path.rfind('.') + 1);  // a renamed setting stays in its group
    if (path != old_path && group.contains(name))
      throw Error(ErrorCode::config, source_name + ": " + old_path + " and " + path + " are the same setting",
                  old_path + " is the old name of " + path, "remove " + old_path);
    out[path == old_path ? key : name] = renamed(value, old_path + ".", source_name);
  }
  return out;
}

}  // namespace

std::span<const RenamedSetting> renamed_settings() { return kRenamed; }

std::string current_path(const std::string& path) {
  for (const RenamedSetting& setting : kRenamed)
    if (path == setting.old_path) return setting.path;
  return path;
}

std::string former_path(const std::string& path) {
  for (const RenamedSetting& setting : kRenamed)
    if (path == setting.path) return setting.old_path;
  return "";
}

Json with_current_names(const Json& config, const std::string& source_name) { return renamed(config, "", source_name); }

}  // namespace comera
