// Config structs (anything with `void fields(FieldVisitor&)`) to and from JSON. Comments are allowed in config
// files; an unknown key is a problem that names the nearest known one.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"

namespace comera {

using Json = nlohmann::ordered_json;

struct FieldEntry {  // one leaf of the tree, for lists, forms and completion
  std::string path;  // "model.attention.rank"
  FieldInfo info;
  std::string type;   // "int", "number", "bool", "text", "int list"
  std::string value;  // as JSON text
};

Json fields_to_json(const FieldsFn& config);
// Reads what `json` has, leaves the rest as it is. Wrong types, ranges, choices and unknown keys become problems.
void fields_from_json(const FieldsFn& config, const Json& json, std::vector<Problem>& problems);
// `path`=`text`, as after --set. The text is JSON, or a bare word for a text field.
void fields_set(const FieldsFn& config, const std::string& path, const std::string& text, std::vector<Problem>& problems);
std::vector<FieldEntry> fields_list(const FieldsFn& config);
// The entry of `path`, if there is one.
std::optional<FieldEntry> fields_find(const FieldsFn& config, const std::string& path);

// JSON without comments. Call these and not Json::parse, a large template that every file would compile again.
Json parse_valid_json(std::string_view text);  // throws nlohmann::json::parse_error
Json try_parse_json(std::string_view text);    // is_discarded() where the text is not JSON

// Parses JSON with comments; throws Error(config) with line and column.
Json parse_json(const std::string& text, const std::string& source_name);
Json read_json_file(const std::string& path);
// On one line that ends with "\n"; what is not UTF-8 is replaced.
std::string json_line(const Json& json);

// The entry of `known` nearest to `name` by edit distance, or "" when none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);
// Throws one Error(config) that lists the problems, if there are any.
void throw_problems(const std::vector<Problem>& problems, const std::string& source_name);

}  // namespace comera
