#include "core/base/json.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/path_visitor.h"
#include "core/base/wide_json.h"

namespace comera {
namespace {

std::string number_text(double value) {
  std::ostringstream out;
  if (value == std::round(value) && std::abs(value) < 1e8) out << std::setprecision(8);  // 1048576, not 1.04858e+06
  out << value;
  return out.str();
}

std::string range_text(const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (low && high) return "must be " + number_text(range.low) + " to " + number_text(range.high);
  if (low) return "must be at least " + number_text(range.low);
  return "must be at most " + number_text(range.high);
}

class Writer : public PathVisitor {
 public:
  Json root = Json::object();
  Writer() : stack_{&root} {}
  void field(const char* name, int64_t& value, const FieldInfo&) override { (*stack_.back())[name] = value; }
  void field(const char* name, double& value, const FieldInfo&) override { (*stack_.back())[name] = value; }
  void field(const char* name, bool& value, const FieldInfo&) override { (*stack_.back())[name] = value; }
  void field(const char* name, std::string& value, const FieldInfo&) override { (*stack_.back())[name] = value; }
  void field(const char* name, std::vector<int64_t>& value, const FieldInfo&) override { (*stack_.back())[name] = value; }

 private:
  bool enter(const char* name) override {
    (*stack_.back())[name] = Json::object();
    stack_.push_back(&(*stack_.back())[name]);
    return true;
  }
  void leave() override { stack_.pop_back(); }
  std::vector<Json*> stack_;
};

// Calls add() for each field, with its value as JSON.
class EntryVisitor : public PathVisitor {
 public:
  void field(const char* name, int64_t& value, const FieldInfo& info) override { add(name, info, "int", value); }
  void field(const char* name, double& value, const FieldInfo& info) override { add(name, info, "number", value); }
  void field(const char* name, bool& value, const FieldInfo& info) override { add(name, info, "bool", value); }
  void field(const char* name, std::string& value, const FieldInfo& info) override { add(name, info, "text", value); }
  void field(const char* name, std::vector<int64_t>& value, const FieldInfo& info) override { add(name, info, "int list", value); }

 private:
  virtual void add(const char* name, const FieldInfo& info, const char* type, const FieldValue& value) = 0;
};

std::string json_text(const FieldValue& value) {
  return std::visit([](const auto& held) { return Json(held).dump(); }, value);
}

class Lister : public EntryVisitor {
 public:
  std::vector<FieldEntry> entries;

 private:
  void add(const char* name, const FieldInfo& info, const char* type, const FieldValue& value) override {
    entries.push_back({path_of(name), info, type, json_text(value)});
  }
};

// Visits only the groups on the path of one field.
class Finder : public EntryVisitor {
 public:
  explicit Finder(const std::string& path) : path_(path) {}
  std::optional<FieldEntry> found;

 private:
  void add(const char* name, const FieldInfo& info, const char* type, const FieldValue& value) override {
    if (path_of(name) == path_) found = {path_, info, type, json_text(value)};
  }
  bool enter(const char*) override { return path_.starts_with(prefix_ + "."); }
  const std::string& path_;
};

class Reader : public PathVisitor {
 public:
  Reader(const Json& json, std::vector<Problem>& problems) : problems_(problems) { stack_.push_back({&json, {}}); }

  void field(const char* name, int64_t& value, const FieldInfo& info) override {
    if (const Json* found = find(name)) {
      const bool whole =
          found->is_number_integer() || (found->is_number_float() && std::floor(found->get<double>()) == found->get<double>());
      if (!whole || std::fabs(found->get<double>()) > 9e15) return wrong(name, "a whole number", *found);
      if (in_range(name, found->get<double>(), info.range)) value = found->get<int64_t>();
    }
  }
  void field(const char* name, double& value, const FieldInfo& info) override {
    if (const Json* found = find(name)) {
      if (!found->is_number()) return wrong(name, "a number", *found);
      if (in_range(name, found->get<double>(), info.range)) value = found->get<double>();
    }
  }
  void field(const char* name, bool& value, const FieldInfo&) override {
    if (const Json* found = find(name)) {
      if (!found->is_boolean()) return wrong(name, "true or false", *found);
      value = found->get<bool>();
    }
  }
  void field(const char* name, std::string& value, const FieldInfo& info) override {
    if (const Json* found = find(name)) {
      if (!found->is_string()) return wrong(name, "a text", *found);
      const std::string text = found->get<std::string>();
      std::vector<std::string> choices;
      for (const Choice& choice : info.choices) choices.emplace_back(choice.id);
      if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
        std::string all;
        for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
        const std::string near = nearest_name(text, choices);
        problems_.push_back({path_of(name), "'" + text + "' is not one of: " + all, near.empty() ? "" : "did you mean '" + near + "'?"});
        return;
      }
      value = text;
    }
  }
  void field(const char* name, std::vector<int64_t>& value, const FieldInfo& info) override {
    if (const Json* found = find(name)) {
      if (!found->is_array()) return wrong(name, "a list of whole numbers", *found);
      std::vector<int64_t> read;
      for (const Json& item : *found) {
        if (!item.is_number_integer()) return wrong(name, "a list of whole numbers", *found);
        if (!in_range(name, item.get<double>(), info.range)) return;
        read.push_back(item.get<int64_t>());
      }
      value = read;
    }
  }
  void finish() { report_unknown(); }

 private:
  struct Level {
    const Json* json;
    std::vector<std::string> known;
  };
  const Json* find(const char* name) {
    Level& level = stack_.back();
    level.known.push_back(name);
    const auto it = level.json->find(name);
    return it == level.json->end() ? nullptr : &*it;
  }
  // Groups that the file does not have are skipped.
  bool enter(const char* name) override {
    // `prefix_` already holds the path of the inner group.
    Level& level = stack_.back();
    level.known.push_back(name);
    const Json* inner = nullptr;
    if (const auto it = level.json->find(name); it != level.json->end()) {
      if (it->is_object())
        inner = &*it;
      else
        problems_.push_back({prefix_, "must be an object, is " + it->dump(), ""});
    }
    if (inner) stack_.push_back({inner, {}});
    return inner;
  }
  void leave() override {
    report_unknown();
    stack_.pop_back();
  }
  void report_unknown() {
    const Level& level = stack_.back();
    for (const auto& item : level.json->items()) {
      if (std::find(level.known.begin(), level.known.end(), item.key()) != level.known.end()) continue;
      const std::string near = nearest_name(item.key(), level.known);
      problems_.push_back(
          {path_of(item.key().c_str()), "is not a known setting", near.empty() ? "" : "did you mean '" + path_of(near.c_str()) + "'?"});
    }
  }
  bool in_range(const char* name, double value, const Range& range) {
    if (value >= range.low && value <= range.high) return true;
    problems_.push_back({path_of(name), range_text(range) + ", is " + number_text(value), ""});
    return false;
  }
  void wrong(const char* name, const std::string& wanted, const Json& found) {
    problems_.push_back({path_of(name), "must be " + wanted + ", is " + found.dump(), ""});
  }
  std::vector<Problem>& problems_;
  std::vector<Level> stack_;
};

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

Json fields_to_json(const FieldsFn& config) {
  Writer writer;
  config(writer);
  return writer.root;
}

void fields_from_json(const FieldsFn& config, const Json& json, std::vector<Problem>& problems) {
  if (!json.is_object()) {
    problems.push_back({"", "a config must be a JSON object, is " + std::string(json.type_name()), ""});
    return;
  }
  Reader reader(json, problems);
  config(reader);
  reader.finish();
}

void fields_set(const FieldsFn& config, const std::string& path, const std::string& text, std::vector<Problem>& problems) {
  const std::optional<FieldEntry> entry = fields_find(config, path);
  if (!entry) {
    std::vector<std::string> paths;
    for (const FieldEntry& known : fields_list(config)) paths.push_back(known.path);
    const std::string near = nearest_name(path, paths);
    problems.push_back({path, "is not a known setting", near.empty() ? "see: comera config show" : "did you mean '" + near + "'?"});
    return;
  }
  const bool is_text = entry->type == "text";
  Json value = is_text ? Json(text) : try_parse_json(text);
  if (value.is_discarded()) value = Json(text);
  if (is_text && text.size() >= 2 && text.front() == '"' && text.back() == '"') value = Json(text.substr(1, text.size() - 2));
  Json root = Json::object();
  Json* at = &root;
  std::stringstream parts(path);
  std::string part;
  while (std::getline(parts, part, '.')) {
    (*at)[part] = Json::object();
    at = &(*at)[part];
  }
  *at = value;
  fields_from_json(config, root, problems);
}

std::vector<FieldEntry> fields_list(const FieldsFn& config) {
  Lister lister;
  config(lister);
  return lister.entries;
}

std::optional<FieldEntry> fields_find(const FieldsFn& config, const std::string& path) {
  Finder finder(path);
  config(finder);
  return finder.found;
}

namespace {

// Brackets that are open at once, but for those in strings and comments. Code that walks through a document calls itself for each.
size_t depth_of(std::string_view text) {
  size_t depth = 0, most = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i).starts_with("/*")) {
      i = std::min(text.find("*/", i + 2), text.size());
    } else if (text[i] == '[' || text[i] == '{') {
      most = std::max(most, ++depth);
    } else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
      --depth;
    }
  }
  return most;
}

template <class Any>
Any parse_as(const std::string& text, const std::string& source_name, const char* hint) {
  constexpr size_t kDeepest = 1000;
  if (const size_t depth = depth_of(text); depth > kDeepest)
    throw Error(ErrorCode::config, source_name + ": nested too deeply", std::to_string(depth) + " brackets are open at once",
                "get the file again: one of this kind has few");
  try {
    return Any::parse(text, nullptr, true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::parse_error& error) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i + 1 < error.byte && i < text.size(); ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n';
    }
    throw Error(ErrorCode::config, source_name + ":" + std::to_string(line) + ":" + std::to_string(column) + ": not valid JSON",
                text.empty() ? "the file is empty" : "the text cannot be read from there on", hint);
  } catch (const nlohmann::json::out_of_range&) {
    throw Error(ErrorCode::config, source_name + ": a number is too large", "the largest double is 1.8e308", hint);
  }
}

}  // namespace

Json parse_valid_json(std::string_view text) { return Json::parse(text); }
Json try_parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

Json parse_json(const std::string& text, const std::string& source_name) {
  return parse_as<Json>(text, source_name, "compare with: comera config show");
}
WideJson parse_wide_json(const std::string& text, const std::string& source_name) {
  return parse_as<WideJson>(text, source_name, "get the file again: it is damaged, or not all of it is there");
}

Json read_json_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::not_found, "cannot read " + path, "no such file, or no permission", "check the path");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path);
}

std::string json_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void throw_problems(const std::vector<Problem>& problems, const std::string& source_name) {
  if (problems.empty()) return;
  const Problem& first = problems.front();
  std::string why;
  for (size_t i = 1; i < problems.size(); ++i) why += (why.empty() ? "also: " : "; ") + problems[i].path + " " + problems[i].text;
  throw Error(ErrorCode::config, source_name + ": " + first.path + (first.path.empty() ? "" : " ") + first.text, why,
              first.hint.empty() ? "comera config show lists every setting with its range" : first.hint);
}

}  // namespace comera
