// comera config show | validate | init
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/config/config.h"

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
    std::vector<std::string> row{entries[i].path, entries[i].value, range_of(entries[i].info),
                                 entries[i].info.live == Live::yes ? "live" : "", entries[i].info.help};
    if (origin) row.insert(row.begin() + 2, origin_of(i));
    rows.push_back(row);
  }
  std::vector<std::string> header{"setting", "value", "range", "while running", "meaning"};
  if (origin) header.insert(header.begin() + 2, "origin");
  print_table(context, header, rows);
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
  show_verb.option("--set", options->sets, "path=value of a setting").take_all();
  show_verb.flag("--origin", options->origin, "where each value came from");
  show_verb.does([&context, options] { return show(context, options->name, options->sets, options->origin); });

  Verb validate = verb.verb("validate", "check a config; lists every problem with its fix");
  validate.option("config", options->name, "preset or file; - for stdin").required();
  validate.option("--set", options->sets, "path=value of a setting").take_all();
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
