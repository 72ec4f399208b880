#include "core/base/module.h"

#include <filesystem>

namespace comera {

std::string module_path(const char* file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {folder / file, folder / "../lib/comera" / file})
    if (fs::exists(path, error)) return path.string();
  return "";
}

}  // namespace comera
