#include "core/base/paths.h"

#include <cstdlib>

namespace comera::paths {
namespace {

std::string folder(const char* variable, const char* below_home) {
  const char* set = std::getenv(variable);
  if (set && set[0] == '/') return std::string(set) + "/comera";  // the standard ignores relative paths
  const char* home = std::getenv("HOME");
  return std::string(home && *home ? home : "/tmp") + below_home + "/comera";
}

}  // namespace

std::string data_folder() { return folder("XDG_DATA_HOME", "/.local/share"); }
std::string config_folder() { return folder("XDG_CONFIG_HOME", "/.config"); }
std::string state_folder() { return folder("XDG_STATE_HOME", "/.local/state"); }
std::string cache_folder() { return folder("XDG_CACHE_HOME", "/.cache"); }

std::string runs_database() {
  const char* set = std::getenv("COMERA_STORE");
  return set && *set ? set : data_folder() + "/runs.db";
}

}  // namespace comera::paths
