#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <iostream>
#include <new>

#include "app/cli/cli.h"
#include "app/cli/help.h"
#include "app/cli/processes.h"
#include "core/base/paths.h"
#include "core/session/version.h"
#include "core/store/schema.h"

namespace comera::cli {
namespace {

constexpr const char* kShortHelp =
    "comera trains networks whose large matrices are tensor trains with trainable ranks.\n\n"
    "  comera train demo                      trains a small model on real images; needs no download\n"
    "  comera runs list                       lists stored runs with accuracy, size and compression\n\n"
    "comera --help lists every verb.\n";

// The nearest known option to the first unknown one in `arguments`; "" if none is near.
std::string nearest_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  const auto learn = [&](const CLI::App* verb) {
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  learn(&app);
  const CLI::App* verb = &app;
  for (const std::string& argument : arguments) {
    if (argument.rfind("--", 0) == 0) {
      const std::string option = argument.substr(0, argument.find('='));
      if (std::find(known.begin(), known.end(), option) == known.end()) return nearest_name(option, known);
    } else if (const auto verbs = verb->get_subcommands([&](const CLI::App* other) { return other->get_name() == argument; });
               !verbs.empty()) {
      verb = verbs.front();
      learn(verb);
    }
  }
  return "";
}

}  // namespace

std::string store_path(const Context& context) { return context.store.empty() ? paths::runs_database() : context.store; }

std::string store_to_read(const Context& context) {
  std::string path = store_path(context);
  if (const std::string newer = why_newer(path); !newer.empty()) note(context, path + " is opened read-only: " + newer);
  return path;
}

// The verb that was chosen, and what goes wrong with it.
int act(const Context& context) {
  try {
    const int code = context.action();
    // Checked here for all verbs: a verb fails if its output was not written.
    errno = 0;
    if (code == 0 && !std::cout.flush()) fail_to_write("to stdout");
    return code;
  } catch (const Error& error) {
    return report(context, static_cast<int>(error.code()), error.what(), error.why(), error.hint());
  } catch (const std::bad_alloc&) {
    return report(context, static_cast<int>(ErrorCode::memory), "out of memory", "the system refused an allocation",
                  "use a smaller batch: --set train.batch=8");
  } catch (const std::exception& error) {
    return report(context, 1, error.what(), "", "please report this");
  }
}

int run(int argc, char** argv) {
  Context context;
  CLI::App app{"Train networks whose large matrices are tensor trains with trainable ranks."};
  app.name("comera");
  set_help(app);
  app.set_version_flag("--version", version_text("comera"));
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_flag("--json", context.json, "one JSON document on stdout");
  app.add_flag("--plain", context.plain, "one record per line, no colour");
  app.add_flag("--quiet,-q", context.quiet, "no progress on stderr");
  app.add_flag("--no-color", context.no_color, "no colour");
  app.add_flag("--no-input", context.no_input, "never ask a question");
  app.add_flag("--yes,-y", context.yes, "answer yes to every question");
  app.add_option("--store", context.store, "database of runs (default: $COMERA_STORE or the user's data folder)");
  Verb program(&app, context);
  add_train(program, context);
  add_eval(program, context);
  add_generate(program, context);
  add_plan(program, context);
  add_duel(program, context);
  add_sweep(program, context);
  add_runs(program, context);
  add_export(program, context);
  add_reproduce(program, context);
  add_data(program, context);
  add_config(program, context);
  add_bench(program, context);
  add_doctor(program, context);
  add_completion(program, context);

  // `comera help train` = `comera train --help`.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    size_t verbs = 0;  // `comera help runs list` = `comera runs list --help`
    for (const CLI::App* group = &app; group && verbs < arguments.size();) {
      const auto inside = group->get_subcommands([&](const CLI::App* verb) { return verb->get_name() == arguments[verbs]; });
      group = inside.empty() ? nullptr : inside.front();
      verbs += group ? 1 : 0;
    }
    arguments.resize(std::min(arguments.size(), std::max<size_t>(verbs, 1)));
    arguments.push_back("--help");
  }
  if (arguments.empty()) {
    std::cerr << kShortHelp;
    return 2;
  }
  const bool wants_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (arguments.size() == 2 && arguments[0] == kServeSession) {
    context.action = [&] { return serve_session_at(context, arguments[1]); };
    return act(context);
  }
  // Checks the leading words, where verbs are expected, so that an unknown verb gets a suggestion.
  const CLI::App* group = &app;
  std::string words;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-") || (group != &app && group->get_require_subcommand_min() == 0)) break;
    std::vector<std::string> verbs;
    const CLI::App* next = nullptr;
    for (const CLI::App* verb : group->get_subcommands({})) {
      verbs.push_back(verb->get_name());
      if (verb->get_name() == argument) next = verb;
    }
    if (!next) {
      context.json = wants_json;
      const std::string near = nearest_name(argument, verbs);
      return report(context, 2, "no verb '" + words + argument + "'", "",
                    near.empty() ? "comera " + words + "--help lists the verbs" : "did you mean 'comera " + words + near + "'?");
    }
    group = next;
    words += argument + " ";
  }
  std::vector<std::string> last_first = arguments;  // CLI11 expects reverse order
  std::reverse(last_first.begin(), last_first.end());
  try {
    app.parse(last_first);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // help or version was requested
      context.action = [&app, error] { return app.exit(error); };
    } else {
      context.json = wants_json;
      const std::string near = nearest_option(app, arguments);
      return report(context, 2, error.what(), "",
                    near.empty() ? "comera help " + arguments[0] + " shows the options" : "did you mean " + near + "?");
    }
  }
  if (!context.action) {
    std::cerr << kShortHelp;
    return 2;
  }
  return act(context);
}

}  // namespace comera::cli

int main(int argc, char** argv) { return comera::cli::run(argc, argv); }
