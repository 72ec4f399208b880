// Values that the window keeps between sessions, as JSON. They are listed once, in a function template that takes a writer or a reader
// (kept_views.cpp). The file may have been edited: a missing, mistyped, out-of-range or unknown value leaves the default.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/json.h"

namespace comera::studio {

class KeptWriter {
 public:
  Json json = Json::object();

  void flag(const char* key, bool value) { json[key] = value; }
  template <class Number>
  void number(const char* key, Number value, double, double) {
    json[key] = value;
  }
  // An enumeration: choice() stores its name, place() its number.
  template <class Choice>
  void choice(const char* key, Choice value, const std::vector<std::string>& names) {
    const auto at = static_cast<size_t>(value);
    if (at < names.size()) json[key] = names[at];
  }
  template <class Choice>
  void place(const char* key, Choice value, int) {
    json[key] = static_cast<int>(value);
  }
  void text(const char* key, const std::string& value) { json[key] = value; }
  template <class Texts>
  void texts(const char* key, const Texts& values) {
    json[key] = values;
  }
  // `write` converts the value to JSON; `read` restores it from JSON and may throw.
  template <class Value, class Write, class Read>
  void custom(const char* key, const Value& value, const Write& write, const Read&) {
    json[key] = write(value);
  }
  template <class Inner>
  void group(const char* key, const Inner& inner) {
    KeptWriter of;
    inner(of);
    json[key] = std::move(of.json);
  }
};

class KeptReader {
 public:
  explicit KeptReader(const Json& json) : json_(json) {}

  void flag(const char* key, bool& value) const {
    if (const Json* found = find(key); found && found->is_boolean()) value = found->get<bool>();
  }
  template <class Number>
  void number(const char* key, Number& value, double low, double high) const {
    const Json* found = find(key);
    if (!found || !found->is_number()) return;
    const double is = found->get<double>();
    if (!(is >= low && is <= high) || (std::is_integral_v<Number> && is != std::floor(is))) return;
    value = static_cast<Number>(is);
  }
  template <class Choice>
  void choice(const char* key, Choice& value, const std::vector<std::string>& names) const {
    const Json* found = find(key);
    if (!found || !found->is_string()) return;
    for (size_t i = 0; i < names.size(); ++i)
      if (found->get<std::string>() == names[i]) value = static_cast<Choice>(i);
  }
  template <class Choice>
  void place(const char* key, Choice& value, int count) const {
    auto at = static_cast<int>(value);
    number(key, at, 0, count - 1);
    value = static_cast<Choice>(at);
  }
  void text(const char* key, std::string& value) const {
    if (const Json* found = find(key); found && found->is_string()) value = found->get<std::string>();
  }
  template <class Texts>
  void texts(const char* key, Texts& values) const {
    const Json* found = find(key);
    if (!found || !found->is_array()) return;
    values.clear();
    for (const Json& one : *found)
      if (one.is_string()) values.insert(values.end(), one.get<std::string>());
  }
  template <class Value, class Write, class Read>
  void custom(const char* key, Value& value, const Write&, const Read& read) const {
    const Json* found = find(key);
    if (!found) return;
    try {
      read(value, *found);
    } catch (const std::exception&) {  // not in the format that `write` produces
    }
  }
  template <class Inner>
  void group(const char* key, const Inner& inner) const {
    static const Json kNothing = Json::object();
    const Json* found = find(key);
    KeptReader of(found && found->is_object() ? *found : kNothing);
    inner(of);
  }

 private:
  const Json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto at = json_.find(key);
    return at == json_.end() ? nullptr : &*at;
  }
  const Json& json_;
};

}  // namespace comera::studio
