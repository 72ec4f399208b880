// Where settings come from: files, presets, the environment, --set.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/config/config.h"
#include "core/config/named_methods.h"
#include "core/config/renamed_settings.h"

namespace comera {
namespace fs = std::filesystem;
namespace {
constexpr const char* kVariables[] = {"COMERA_MODEL_", "COMERA_DATA_", "COMERA_METHOD_", "COMERA_TRAIN_"};
}

namespace {

void apply_sets(RunConfig& config, const std::vector<std::string>& sets, const std::string& source) {
  std::vector<Problem> problems;
  for (const std::string& given : sets) {
    const std::string set = current_set(given);
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::usage, source + " " + set + ": not of the form path=value", "", "for example --set train.batch=8");
    const std::string path_set = set.substr(0, equals);
    if (path_set == "method") {
      set_method(config, set.substr(equals + 1));
      continue;
    }
    fields_set(fields_of(config), path_set, set.substr(equals + 1), problems);
    if (path_set.rfind("method.comera.", 0) == 0) config.method.comera.only_target(path_set.substr(14));
  }
  throw_problems(problems, source);
}

}  // namespace

void set_config(RunConfig& config, const std::vector<std::string>& sets) {
  apply_sets(config, sets, "--set");
  validate_config(config, "--set");
}

namespace {

std::string path_of_config(const std::string& name_or_path) {
  if (name_or_path == "-") return name_or_path;
  const bool folder = fs::is_directory(name_or_path);  // of the name of a preset: where somebody keeps its results
  if (!folder && fs::exists(name_or_path)) return name_or_path;
  const std::vector<std::string> presets = preset_names();
  const std::string stem = fs::path(name_or_path).stem().string();
  if (name_or_path.find('/') == std::string::npos && std::find(presets.begin(), presets.end(), stem) != presets.end())
    return assets_folder() + "/presets/" + stem + ".json";
  if (folder)
    throw Error(ErrorCode::config, name_or_path + " is a folder, not a config file", "",
                "hf:" + name_or_path + " if it holds a model of the transformers library");
  const std::string near = nearest_name(stem, presets);
  if (presets.empty())
    throw Error(ErrorCode::not_found, "no config '" + name_or_path + "'",
                "it is not a file, and there are no presets in " + assets_folder(),
                "set COMERA_ASSETS to the folder assets of the sources or of the installation (share/comera/assets)");
  std::string all;
  for (const std::string& preset : presets) all += (all.empty() ? "" : ", ") + preset;
  throw Error(ErrorCode::not_found, "no config '" + name_or_path + "'", "it is neither a file nor a preset (" + all + ")",
              near.empty() ? "give a path or a preset's name" : "did you mean '" + near + "'?");
}

void note_origins(const Json& json, const std::string& prefix, const std::string& source, ConfigOrigins* origins) {
  if (!origins || !json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      note_origins(value, prefix + key + ".", source, origins);
    else
      (*origins)[prefix + key] = source;
  }
}

// `name`: of the settings in messages.
void take_layer(RunConfig& config, const Json& settings, const std::string& name, const std::string& source, ConfigOrigins* origins) {
  const Json json = with_current_names(settings, name);
  std::vector<Problem> problems;
  fields_from_json(fields_of(config), json, problems);
  throw_problems(problems, name);
  note_origins(json, "", source, origins);
}

void read_layer(RunConfig& config, const std::string& path, const std::string& source, ConfigOrigins* origins) {
  std::ostringstream piped;
  if (path == "-") piped << std::cin.rdbuf();
  const std::string name = path == "-" ? "stdin" : path;
  take_layer(config, path == "-" ? parse_json(piped.str(), name) : read_json_file(path), name, source, origins);
}

std::string variable_of(const std::string& path) {
  std::string name = "COMERA_" + path;
  for (char& c : name) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// COMERA_MODEL_..., COMERA_DATA_..., COMERA_METHOD_... and COMERA_TRAIN_... as path=value.
std::vector<std::string> environment_sets(RunConfig& config) {
  std::map<std::string, std::string> paths;  // name of the variable -> path of the setting
  std::vector<std::string> names, sets;
  for (const FieldEntry& field : fields_list(fields_of(config))) {
    if (field.path.find('.') == std::string::npos) continue;  // the name belongs to one run
    names.push_back(variable_of(field.path));
    CHECK(paths.emplace(names.back(), field.path).second, "two settings share the variable " << names.back());
  }
  for (const RenamedSetting& setting : renamed_settings()) paths.emplace(variable_of(setting.old_path), setting.old_path);
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size()) continue;  // empty: as if it were not set
    const bool ours =
        std::any_of(std::begin(kVariables), std::end(kVariables), [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
    if (!ours) continue;
    const auto found = paths.find(name);
    if (found == paths.end()) {
      const std::string near = nearest_name(name, names);
      throw Error(ErrorCode::config, "the environment variable " + name + " names no setting", "",
                  near.empty() ? "comera config show lists the settings" : "did you mean " + near + "?");
    }
    sets.push_back(found->second + text.substr(equals));
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

// The layers below and above the one that `named` reads; it returns its name for messages.
RunConfig load_layers(const std::vector<std::string>& sets, ConfigOrigins* origins,
                      const std::function<std::string(RunConfig& config, ConfigOrigins* origins)>& named) {
  RunConfig config;
  ConfigOrigins unasked;
  if (!origins) origins = &unasked;
  for (const std::string& path : paths::config_files())
    if (fs::exists(path)) read_layer(config, path, path, origins);
  const std::string name = named(config, origins);
  const std::vector<std::string> variables = environment_sets(config);
  apply_sets(config, variables, "the environment");
  apply_sets(config, sets, "--set");
  for (const std::string& set : variables) (*origins)[current_path(set.substr(0, set.find('=')))] = "environment";
  for (const std::string& set : sets) (*origins)[current_path(set.substr(0, set.find('=')))] = "--set";
  if (!origins->contains("method.adam.eps")) config.method.adam.eps = config.method.chosen().eps;
  validate_config(config, !sets.empty() ? "--set" : !variables.empty() ? "the environment" : name);
  return config;
}

}  // namespace

RunConfig load_config(const std::string& name_or_path, const std::vector<std::string>& sets, ConfigOrigins* origins) {
  return load_layers(sets, origins, [&](RunConfig& config, ConfigOrigins* origins) -> std::string {
    if (name_or_path.empty()) return "";
    const std::string named = path_of_config(name_or_path);
    read_layer(config, named, name_or_path, origins);
    if (config.name.empty()) config.name = named == "-" ? "stdin" : fs::path(named).stem().string();
    return named;
  });
}

RunConfig load_config(const Json& named, const std::string& source, const std::vector<std::string>& sets, ConfigOrigins* origins) {
  return load_layers(sets, origins, [&](RunConfig& config, ConfigOrigins* origins) {
    take_layer(config, named, source, source, origins);
    return source;
  });
}

std::string assets_folder() {
  if (const char* folder = std::getenv("COMERA_ASSETS"); folder && *folder) return folder;
  std::error_code ignored;
  const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = bin.parent_path() / "share/comera/assets";
  // Installed, copied with its assets, in the build folder of a source folder, or built from one that is still there.
  for (const fs::path& folder : {installed, bin / "assets", bin.parent_path().parent_path() / "assets", fs::path(COMERA_SOURCE_ASSETS)})
    if (!folder.empty() && fs::exists(folder / "presets", ignored)) return folder.string();
  return installed.string();
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(assets_folder() + "/presets", ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace comera
