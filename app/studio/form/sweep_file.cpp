#include "app/studio/form/sweep_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "app/studio/form/new_run.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/named_methods.h"

namespace comera::studio {
namespace {

Json json_of(const FieldValue& value) {
  return std::visit([](const auto& of) { return Json(of); }, value);
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts{""};
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c == '[') ++depth;
    if (!quoted && c == ']') --depth;
    if (c == ',' && !quoted && depth <= 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();  // the comma before the value that comes next
  return parts;
}

// One value as JSON text, as the config holds it: 1e-3 and 0.001 are the same.
std::string read_value(const std::string& path, const std::string& text, std::string& problem) {
  RunConfig config;
  if (path == kMethodPath) {
    try {
      set_method(config.method, text);
      return Json(text).dump();
    } catch (const Error& error) {
      problem = std::string(error.what()) + (error.hint().empty() ? "" : ", " + error.hint());
      return "";
    }
  }
  std::vector<Problem> problems;
  fields_set(fields_of(config), path, text, problems);
  if (!problems.empty()) {
    problem = problems.front().text;
    return "";
  }
  return json_of(field_values(config).at(path)).dump();
}

// Settings that the methods of this list set, and so the form must not.
std::set<std::string> set_by_methods(const RunConfig& config, const std::vector<std::string>& methods) {
  std::set<std::string> paths;
  const FieldValues before = field_values(config);
  for (const std::string& method : methods) {
    RunConfig changed = config;
    set_method(changed, parse_valid_json(method).get<std::string>());
    for (const auto& [path, value] : field_values(changed))
      if (before.at(path) != value) paths.insert(path);
  }
  return paths;
}

// Changes of the form that all points share.
Json shared_settings(const NewRun& form) {
  std::set<std::string> without{"name", "train.seed"};
  bool optimizer = false;
  for (const VariedSetting& varied : form.sweep.varied) {
    without.insert(varied.path);
    if (varied.path == kMethodPath) without.merge(set_by_methods(form.config, varied.list.values));
    for (const char* sets_eps : {kMethodPath, "method.optimizer", "method.galore.rule"}) optimizer = optimizer || varied.path == sets_eps;
  }
  // Not chosen, but that of the optimizer: each point has its own.
  const bool usual_eps = form.config.method.adam.eps == form.config.method.chosen().eps;
  if (optimizer && usual_eps) without.insert("method.adam.eps");
  // As in form_command(): a source may name another eps than the optimizer's usual one.
  const bool names_eps = form.is_changed("method.optimizer") || form.is_changed("method.galore.rule");
  Json set = Json::object();
  for (const auto& [path, value] : field_values(form.config))
    if ((form.is_changed(path) || (names_eps && path == "method.adam.eps")) && !without.contains(path)) set[path] = json_of(value);
  return set;
}

Json list_of(const ValueList& list) {
  Json values = Json::array();
  for (const std::string& value : list.values) values.push_back(parse_valid_json(value));
  return values;
}

}  // namespace

bool may_vary(const std::string& path) {
  return path == kMethodPath || (path != "name" && path != "train.seed" && find_setting(path) != nullptr);
}

ValueList read_values(const std::string& path, const std::string& text) {
  ValueList list;
  for (const std::string& part : parts_of(text)) {
    std::string problem;
    const std::string value = part.empty() ? "" : read_value(path, part, problem);
    if (part.empty()) problem = trimmed(text).empty() ? "Give values, separated by commas" : "A value is missing between two commas";
    if (problem.empty() && std::count(list.values.begin(), list.values.end(), value) > 0) problem = "is given twice";
    if (!problem.empty()) {
      list.problem = part.empty() ? problem : "'" + part + "': " + problem;
      return list;
    }
    list.values.push_back(value);
  }
  return list;
}

std::string sweep_file(const NewRun& form) {
  const bool preset = std::find(form.presets.begin(), form.presets.end(), form.source) != form.presets.end();
  Json json = {{"name", form.sweep.name}, {"base", preset ? form.source : std::filesystem::absolute(form.source).string()}};
  if (const Json set = shared_settings(form); !set.empty()) json["set"] = set;
  Json grid = Json::object();
  for (const VariedSetting& varied : form.sweep.varied) grid[varied.path] = list_of(varied.list);
  if (!grid.empty()) json["grid"] = grid;
  json["seeds"] = form.sweep.seeds.text.empty() ? Json::array({form.config.train.seed}) : list_of(form.sweep.seeds.list);
  return json.dump(2) + "\n";
}

size_t PlannedSweep::runs() const { return tasks_of(points).size(); }

std::string PlannedSweep::text_of_point(size_t point) const { return comera::text_of(points[point].settings, sweep.varied()); }

PlannedSweep plan_sweep_file(const std::string& file) {
  PlannedSweep plan;
  try {
    plan.sweep = read_sweep(parse_json(file, "the sweep"), "the sweep", "sweep");
    plan.points = plan_sweep(plan.sweep, [&](const std::vector<std::string>& sets) { return load_config(plan.sweep.base, sets); });
  } catch (const Error& error) {
    plan.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    plan.problem = error.what();
  }
  return plan;
}

}  // namespace comera::studio
