// JSON whose objects have many keys: a Json (json.h) keeps the order of keys, so it compares a key with all others.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace comera {

using WideJson = nlohmann::json;

// As parse_json().
WideJson parse_wide_json(const std::string& text, const std::string& source_name);

}  // namespace comera
