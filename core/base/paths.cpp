#include "core/base/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"

namespace comera::paths {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string home() {
  const std::string value = environment("HOME");
  if (!value.empty()) return value;
  const passwd* user = ::getpwuid(::getuid());
  if (user && user->pw_dir && *user->pw_dir) return user->pw_dir;
  throw Error(ErrorCode::storage, "cannot tell where your files belong", "HOME is not set and the user has no home folder",
              "set HOME, or COMERA_STORE and the XDG folders");
}

// The XDG rules: a relative path in the environment is invalid and ignored.
std::string xdg(const char* variable, const char* below_home) {
  const std::string value = environment(variable);
  return (!value.empty() && value[0] == '/' ? value : home() + below_home) + "/comera";
}

}  // namespace

std::string data_folder() { return xdg("XDG_DATA_HOME", "/.local/share"); }
std::string sets_folder() { return data_folder() + "/data"; }
std::string config_folder() { return xdg("XDG_CONFIG_HOME", "/.config"); }
std::string state_folder() { return xdg("XDG_STATE_HOME", "/.local/state"); }
std::string cache_folder() { return xdg("XDG_CACHE_HOME", "/.cache"); }

std::string runs_database() {
  const std::string value = environment("COMERA_STORE");
  return value.empty() ? data_folder() + "/runs.db" : value;
}

std::string checkpoints_folder(const std::string& store) {
  return (std::filesystem::absolute(store).parent_path() / "checkpoints").lexically_normal().string();
}

std::string studio_log() { return state_folder() + "/studio.log"; }

std::string config_file() { return config_folder() + "/config.json"; }

std::vector<std::string> config_files() {
  std::vector<std::string> files;
  std::string folders = environment("XDG_CONFIG_DIRS");
  if (folders.empty()) folders = "/etc/xdg";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    // The first folder counts most, so it comes last.
    if (folders[begin] == '/') files.insert(files.begin(), folders.substr(begin, end - begin) + "/comera/config.json");
    begin = end + 1;
  }
  if (!environment("HOME").empty() || !environment("XDG_CONFIG_HOME").empty()) files.push_back(config_file());
  files.push_back("comera.json");
  return files;
}

std::string ensure_folder(const std::string& folder) {
  if (folder.empty()) return folder;
  std::filesystem::path made;
  for (const auto& part : std::filesystem::path(folder)) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    if (std::error_code ignored; std::filesystem::is_directory(made, ignored)) continue;  // "/" on a read-only disk
    throw Error(ErrorCode::storage, "cannot create folder " + made.string(), std::strerror(error),
                "choose another place, or change its permissions");
  }
  if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored))
    throw Error(ErrorCode::storage, "cannot create folder " + folder, "a file of that name is in the way", "choose another place");
  return folder;
}

std::string ensure_folder_of(const std::string& file) {
  ensure_folder(std::filesystem::path(file).parent_path().string());
  return file;
}

}  // namespace comera::paths
