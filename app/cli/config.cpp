// comera config show | explain | validate | init
#include <filesystem>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/base/json.h"
#include "core/base/path_visitor.h"
#include "core/config/config.h"
#include "core/config/renamed_settings.h"

namespace comera::cli {
namespace {

std::string range_of(const FieldInfo& info) {
  if (!info.choices.empty()) {
    std::string all;
    for (const Choice& choice : info.choices) all += (all.empty() ? "" : "|") + std::string(choice.id);
    return all;
  }
  const bool low = info.range.low > -1e300, high = info.range.high < 1e300;
  if (!low && !high) return "";
  return (low ? significant(info.range.low, 6) : "") + ".." + (high ? significant(info.range.high, 6) : "");
}

int show(const Context& context, const std::string& name, const std::vector<std::string>& sets, bool origin) {
  ConfigOrigins origins;
  RunConfig config = load_config(name, sets, &origins);
  const std::vector<FieldEntry> entries = fields_list(fields_of(config));
  const auto origin_of = [&](size_t i) {
    const auto found = origins.find(entries[i].path);
    return found == origins.end() ? std::string("built-in") : found->second;
  };
  if (context.json) {
    Json document = {{"config", config_to_json(config)}};
    for (size_t i = 0; i < entries.size() && origin; ++i) document["origin"][entries[i].path] = origin_of(i);
    print_json(document);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    std::vector<std::string> row{entries[i].path, entries[i].value, range_of(entries[i].info), entries[i].info.is_live() ? "live" : "",
                                 entries[i].info.help};
    if (origin) row.insert(row.begin() + 2, origin_of(i));
    rows.push_back(row);
  }
  std::vector<std::string> header{"setting", "value", "range", "while running", "meaning"};
  if (origin) header.insert(header.begin() + 2, "origin");
  print_table(context, header, rows);
  return 0;
}

// What a setting and the groups around it depend on, the outermost first.
class Conditions : public PathVisitor {
 public:
  explicit Conditions(std::string of) : of_(std::move(of)) {}
  std::vector<When> found;
  void field(const char* name, int64_t&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, double&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, bool&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, std::string&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, std::vector<int64_t>&, const FieldInfo& info) override { look(name, info.when); }

 private:
  void nested(const char* name, const GroupInfo& info, const std::function<void(FieldVisitor&)>& visit) override {
    if (!of_.starts_with(path_of(name) + ".")) return;
    if (*info.when.path) found.push_back(info.when);
    PathVisitor::nested(name, info, visit);
  }
  void look(const char* name, const When& when) {
    if (path_of(name) == of_ && *when.path) found.push_back(when);
  }
  std::string of_;
};

std::string one_of(const std::vector<std::string>& values) {
  std::string all;
  for (const std::string& value : values) all += (all.empty() ? "" : " or ") + value;
  return all;
}

std::string condition_of(const When& when) {
  std::string text = std::string(when.path) + " is " + one_of(when.values);
  for (const When& other : when.others) text += ", or " + condition_of(other);
  return text;
}

Json json_of(const When& when) {
  Json json = {{"setting", when.path}, {"values", when.values}};
  for (const When& other : when.others) json["or"].push_back(json_of(other));
  return json;
}

int explain(const Context& context, const std::string& asked) {
  const std::string path = current_path(asked);
  const FieldEntry* setting = find_setting(path);
  if (!setting) {
    std::vector<std::string> known;
    for (const FieldEntry& entry : all_settings()) known.push_back(entry.path);
    const std::string near = nearest_name(path, known);
    throw Error(ErrorCode::not_found, "no setting '" + asked + "'", "",
                near.empty() ? "comera config show lists them" : "did you mean '" + near + "'?");
  }
  const FieldInfo& info = setting->info;
  RunConfig config;
  Conditions conditions(path);
  config.fields(conditions);
  if (context.json) {
    Json choices = Json::array(), when = Json::array();
    for (const Choice& choice : info.choices) choices.push_back({{"id", choice.id}, {"title", choice.title}, {"about", choice.about}});
    for (const When& one : conditions.found) when.push_back(json_of(one));
    print_json({{"setting", path},
                {"title", info.title},
                {"unit", info.unit},
                {"type", setting->type},
                {"built_in", parse_valid_json(setting->value)},
                {"range", range_of(info)},
                {"live", info.is_live()},
                {"meaning", info.help},
                {"more", info.more},
                {"choices", choices},
                {"used_when", when}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"title", info.title}, {"meaning", info.help}};
  if (*info.more) rows.push_back({"", info.more});
  rows.push_back({"type", setting->type});
  if (*info.unit) rows.push_back({"unit", info.unit});
  rows.push_back({"built-in", setting->value});
  if (info.choices.empty() && !range_of(info).empty()) rows.push_back({"range", range_of(info)});
  for (const Choice& choice : info.choices) rows.push_back({choice.id, choice.about});
  for (const When& one : conditions.found) rows.push_back({"used", "when " + condition_of(one)});
  rows.push_back({"while running", info.is_live() ? "may change" : "fixed when a run starts"});
  print_table(context, {"setting", path}, rows);
  return 0;
}

}  // namespace

void add_config(Verb& program, Context& context) {
  Verb verb = program.verb("config", "show, check or create a config");
  verb.needs_verb();
  struct Options {
    std::string name, output;
    std::vector<std::string> sets;
    bool origin = false;
  };
  auto options = std::make_shared<Options>();
  Verb show_verb = verb.verb("show", "show every setting with value, range and meaning");
  show_verb.option("config", options->name, "preset or file; - for stdin (default: the built-in values)");
  show_verb.settings(options->sets);
  show_verb.flag("--origin", options->origin, "where each value came from");
  show_verb.does([&context, options] { return show(context, options->name, options->sets, options->origin); });

  Verb explain_verb = verb.verb("explain", "everything about one setting: meaning, choices, when it is used");
  explain_verb.option("setting", options->name, "path, as after --set").required();
  explain_verb.does([&context, options] { return explain(context, options->name); });

  Verb validate = verb.verb("validate", "check a config; lists every problem with its fix");
  validate.option("config", options->name, "preset or file; - for stdin").required();
  validate.settings(options->sets);
  validate.does([&context, options] {
    load_config(options->name, options->sets);
    if (context.json)
      print_json({{"valid", true}});
    else
      std::cout << options->name << " is valid\n";
    return 0;
  });

  Verb init = verb.verb("init", "write a preset with all its settings to a file, as a starting point");
  init.option("config", options->name, "preset").required();
  init.option("-o,--output", options->output, "output file; - for stdout").required();
  init.does([&context, options] {
    check_stdout(context, options->output);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(options->output, ignored))
      throw Error(ErrorCode::usage, options->output + " already exists", "settings in it would be lost",
                  "name another file, or remove this one");
    const std::string text = config_to_json(load_config(options->name, {})).dump(2) + "\n";
    OutputFile file(options->output);
    file.stream() << text;
    file.finish();
    if (file.is_stdout()) return 0;
    if (context.json)
      print_json({{"file", options->output}});
    else
      note(context, "wrote " + options->output);
    return 0;
  });
}

}  // namespace comera::cli
