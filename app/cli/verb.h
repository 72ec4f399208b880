// The description of a verb: name, options, action. A layer over CLI11, whose headers take longer to compile than a verb; only few files
// include them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace comera::cli {

struct Context;

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& take_all();       // for lists: each occurrence adds one value
  Option& shows_default();  // show the default value in the help
  Option& one_of(const std::vector<std::string>& words);
  Option& positive();
  Option& not_negative();
  Option& within(int low, int high);

 private:
  CLI::Option* option_;
};

class Verb {
 public:
  Verb(CLI::App* app, Context& context) : app_(app), context_(&context) {}
  // A nested verb: "list" of "runs".
  Verb verb(const std::string& name, const std::string& help);
  // Has no action of its own: a nested verb must follow.
  void needs_verb();
  // A positional argument or an option: "run", "--steps", "-o,--output". `value` must outlive the action.
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& names, int& value, const std::string& help);
  Option option(const std::string& names, int64_t& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  // --set path=value, and --method NAME as method=NAME before it.
  void settings(std::vector<std::string>& sets);
  void method(std::vector<std::string>& sets);                                // --method alone, where --set is there already
  void flag(const std::string& names, bool& value, const std::string& help);  // "--short,!--long": --long negates it
  // Called after the whole command line is parsed, if this verb was chosen; returns the exit code.
  void does(std::function<int()> action);
  const CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
  Context* context_;
};

}  // namespace comera::cli
