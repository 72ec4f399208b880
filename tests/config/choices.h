// Values of an axis, for tests that combine them all: a new value is in them by its row.
#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/config/config.h"

namespace comera {

inline std::vector<const char*> choices_of(const char* path) {
  const FieldEntry* setting = find_setting(path);
  CHECK(setting && !setting->info.choices.empty(), path << " has no choices");
  std::vector<const char*> ids;
  for (const Choice& choice : setting->info.choices) ids.push_back(choice.id);
  return ids;
}

}  // namespace comera
