// What readers and writers of model folders say of a folder that is wrong.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera::folder_errors {

[[noreturn]] inline void refuse(const std::string& path, const std::string& what, const std::string& why, const std::string& hint = "") {
  throw Error(ErrorCode::config, path + ": " + what, why, hint);
}

// A value or a name of a file in a message: one line of ASCII, cut where it is long.
inline std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}
inline std::string shown(const std::string& name) {
  const std::string text = shown(Json(name));
  return text.ends_with("...") ? text : text.substr(1, text.size() - 2);
}

}  // namespace comera::folder_errors
