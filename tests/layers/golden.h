// Golden tensors: outputs of the published code, one .safetensors file a case (tests/golden, or $COMERA_GOLDEN_DIR).
// Tests read every file of a kind; shapes and settings come from the file.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/tensor/safetensors.h"

namespace comera::layer_test {

inline constexpr double kGoldenDouble = 1e-9, kGoldenFloat = 1e-4;  // relative, as agreed with the files

// A setting of the file's metadata; without `otherwise` it must be there.
template <class T>
T golden_setting(const SafetensorsFile& file, const char* key, std::optional<T> otherwise = {}) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end() && otherwise) return *otherwise;
  return parse_json(file.metadata().at(key), file.path()).get<T>();
}

// Which test reads a file. The newer files say their method; the older ones have it in their name. Some methods have one test for
// several of their files, or none yet for some ("").
inline std::string golden_kind(const SafetensorsFile& file) {
  const std::string name = std::filesystem::path(file.path()).filename().string();
  const std::string method = golden_setting<std::string>(file, "method", "");
  if (method.empty()) {
    for (const char* kind : {"tt_linear", "ttm_embedding", "encoder", "galore", "coap", "came", "apollo"})
      if (name.rfind(kind + std::string("_"), 0) == 0) return kind;
    return "";
  }
  if (method == "mesa_shared") return "mesa";
  if (method == "coap_adamw") return "coap";
  return method;
}

inline const char* given_golden_folder() { return std::getenv("COMERA_GOLDEN_DIR"); }

// All files, by name.
inline std::vector<std::string> all_golden_files() {
  const char* folder = given_golden_folder();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder ? folder : COMERA_SOURCE_DIR "/tests/golden"))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// Those of a kind. The project's own folder has some of each; another may have none, and then there is nothing to compare.
inline std::vector<std::string> golden_files(const std::string& kind) {
  std::vector<std::string> files = all_golden_files();
  std::erase_if(files, [&](const std::string& path) { return golden_kind(SafetensorsFile(path)) != kind; });
  if (files.empty() && !given_golden_folder()) ADD_FAILURE() << "tests/golden has no file of the kind " << kind;
  return files;
}

// Prints that a file was read, with the largest relative error.
inline void report_golden(const std::string& path, double worst, const std::string& note = "") {
  std::cout << "golden " << std::filesystem::path(path).filename().string() << ": largest relative error " << worst << note << "\n";
}

}  // namespace comera::layer_test
