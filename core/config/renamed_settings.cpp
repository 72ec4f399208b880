#include "core/config/renamed_settings.h"

#include <algorithm>
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
    {"method.galore.eight_bit", "method.galore.rule", "adam8bit", "adam"},
};

const RenamedSetting* renaming_of(const std::string& old_path) {
  for (const RenamedSetting& setting : kRenamed)
    if (old_path == setting.old_path) return &setting;
  return nullptr;
}

Json current_value(const std::string& old_path, const Json& value) {
  const RenamedSetting* setting = renaming_of(old_path);
  if (!setting || !setting->if_true || !value.is_boolean()) return value;
  return value.get<bool>() ? setting->if_true : setting->if_false;
}

Json renamed(const Json& group, const std::string& prefix, const std::string& source_name) {
  if (!group.is_object()) return group;
  Json out = Json::object();
  for (const auto& [key, value] : group.items()) {
    const std::string old_path = prefix + key, path = current_path(old_path);
    const std::string name = path.substr(path.rfind('.') + 1);  // a renamed setting stays in its group
    if (path != old_path && group.contains(name))
      throw Error(ErrorCode::config, source_name + ": " + old_path + " and " + path + " are the same setting",
                  old_path + " is the old name of " + path, "remove " + old_path);
    out[path == old_path ? key : name] = renamed(current_value(old_path, value), old_path + ".", source_name);
  }
  return out;
}

}  // namespace

std::span<const RenamedSetting> renamed_settings() { return kRenamed; }

std::string current_path(const std::string& path) {
  const RenamedSetting* setting = renaming_of(path);
  return setting ? setting->path : path;
}

std::string current_set(const std::string& set) {
  const size_t equals = std::min(set.find('='), set.size());
  const std::string path = set.substr(0, equals), value = set.substr(equals);
  const RenamedSetting* setting = renaming_of(path);
  if (!setting) return set;
  if (setting->if_true && (value == "=true" || value == "=false"))
    return std::string(setting->path) + "=" + (value == "=true" ? setting->if_true : setting->if_false);
  return setting->path + value;
}

std::string former_path(const std::string& path) {
  for (const RenamedSetting& setting : kRenamed)
    if (path == setting.path) return setting.old_path;
  return "";
}

Json with_current_names(const Json& config, const std::string& source_name) { return renamed(config, "", source_name); }

}  // namespace comera
