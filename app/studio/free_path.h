// Names of exported files: no file is ever overwritten.
#pragma once
#include <filesystem>
#include <string>

namespace comera::studio {

// FOLDER/NAME.EXTENSION; if that exists, NAME-2, NAME-3, ... `extension` has no dot; "" = none, of a folder.
inline std::string free_path(const std::filesystem::path& folder, const std::string& name, const std::string& extension) {
  for (int i = 1;; ++i) {
    const std::filesystem::path path =
        folder / (name + (i > 1 ? "-" + std::to_string(i) : "") + (extension.empty() ? "" : "." + extension));
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return path.string();
  }
}

}  // namespace comera::studio
