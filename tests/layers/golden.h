// Golden tensors: outputs of the published code, one .safetensors file a case (tests/golden, or $COMERA_GOLDEN_DIR).
// Tests read every file of a name pattern; shapes come from the file.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/tensor/safetensors.h"

namespace comera::layer_test {

inline constexpr double kGoldenDouble = 1e-9, kGoldenFloat = 1e-4;  // relative, as agreed with the files

// Every file PREFIX*.safetensors, by name.
inline std::vector<std::string> golden_files(const std::string& prefix) {
  const char* folder = std::getenv("COMERA_GOLDEN_DIR");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder ? folder : COMERA_SOURCE_DIR "/tests/golden")) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A setting of the file's metadata.
template <class T>
T golden_setting(const SafetensorsFile& file, const char* key) {
  return parse_json(file.metadata().at(key), file.path()).get<T>();
}

}  // namespace comera::layer_test
