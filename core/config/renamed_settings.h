// Settings that have a better name now. Stored configs, config files, `--set`, environment variables and stored edits
// may still use the old one; each reader passes what it read through here, so the rest of the program sees new names.
#pragma once
#include <span>
#include <string>

#include "core/base/json.h"

namespace comera {

struct RenamedSetting {
  const char *old_path, *path;                         // dotted, as after --set
  const char *if_true = nullptr, *if_false = nullptr;  // of a switch that is a choice now: the choices that its values meant
};
std::span<const RenamedSetting> renamed_settings();

// The path of today of a setting ("train.lr_rest" -> "train.lr"); every other text as it is.
std::string current_path(const std::string& path);
// "path=value" with path and value of today.
std::string current_set(const std::string& set);
// The old path of a setting that was renamed, else "".
std::string former_path(const std::string& path);
// A config under the names of today, its keys in the same order. Throws Error(config) where one setting has both its
// old and its new name; `source_name` says whose config it is.
Json with_current_names(const Json& config, const std::string& source_name);

}  // namespace comera
