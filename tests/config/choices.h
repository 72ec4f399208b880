// Values of an axis, for tests that combine them all: a new value is in them by its name in the config.
#pragma once
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/method.h"

namespace comera {

inline std::vector<const char*> choices_of(const std::string& path) {
  static const std::vector<FieldEntry> settings = [] {
    MethodConfig config;
    return fields_list(fields_of(config));
  }();
  std::vector<const char*> ids;
  for (const FieldEntry& setting : settings)
    if ("method." + setting.path == path)
      for (const Choice& choice : setting.info.choices) ids.push_back(choice.id);
  CHECK(!ids.empty(), path << " has no choices");
  return ids;
}

}  // namespace comera
