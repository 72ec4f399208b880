// The data formats: how the files (or folders) of each are recognised and opened. Each is defined in the file of its Dataset.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/data/datasets.h"

namespace comera {

struct Format {
  bool (*is)(const std::string& path, std::string_view bytes);  // null: every file that no other format recognises
  std::unique_ptr<Dataset> (*open)(const std::string& path, const DataSpec& spec);
  const char* endings[4] = {};       // in a folder behind the name of the split, the most usual first
  const char* dev_and_test = "";     // what such a file may have behind dev or test in its name
  const char *dev = "", *test = "";  // other names of dev and test
};

extern const Format kTextFormat, kStreamFormat, kClickFormat, kImageFormat, kPictureFormat;
// The last one that recognises a file opens it.
inline constexpr const Format* kFormats[] = {&kTextFormat, &kStreamFormat, &kClickFormat, &kImageFormat, &kPictureFormat};

}  // namespace comera
