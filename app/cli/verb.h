// What a verb tells of itself: its name, its options, and what it does. CLI11 stands behind this and is read by few files:
// compiling its headers takes longer than compiling a verb.
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
  Option& take_all();       // of a list: each time it is given adds one
  Option& shows_default();  // the help tells what the value is when it is not given
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
  // One below this: "list" of "runs".
  Verb verb(const std::string& name, const std::string& help);
  // It does nothing itself: one of those below it must follow.
  void needs_verb();
  // A word or an option: "run", "--steps", "-o,--output". Its value must live as long as what the verb does.
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& names, int& value, const std::string& help);
  Option option(const std::string& names, int64_t& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help);  // "--short,!--long": the second one is its opposite
  // Called when this verb was chosen and all of the command line is read; returns the exit code.
  void does(std::function<int()> action);
  const CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
  Context* context_;
};

}  // namespace comera::cli
