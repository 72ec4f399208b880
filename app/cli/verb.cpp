#include "app/cli/verb.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "app/cli/cli.h"
#include "core/base/numbers.h"

namespace comera::cli {

Option& Option::required() { return option_->required(), *this; }
Option& Option::take_all() { return option_->take_all(), *this; }
Option& Option::shows_default() { return option_->capture_default_str(), *this; }
Option& Option::one_of(const std::vector<std::string>& words) { return option_->check(CLI::IsMember(words)), *this; }
// CLI11's own checks accept NaN and infinity, and name the largest double.
Option& Option::positive() {
  const auto problem = [](std::string& text) {
    const auto number = read_decimal(text);
    return number && number->rest.empty() && number->value > 0 ? "" : "'" + text + "' is not a number above 0";
  };
  return option_->check(CLI::Validator(problem, "POSITIVE")), *this;
}
Option& Option::not_negative() {
  const auto problem = [](std::string& text) {
    const auto number = read_decimal(text);
    return number && number->rest.empty() && number->value >= 0 ? "" : "'" + text + "' is not a number of 0 or more";
  };
  return option_->check(CLI::Validator(problem, "NONNEGATIVE")), *this;
}
Option& Option::within(int low, int high) { return option_->check(CLI::Range(low, high)), *this; }

Verb Verb::verb(const std::string& name, const std::string& help) { return {app_->add_subcommand(name, help), *context_}; }
void Verb::needs_verb() { app_->require_subcommand(1); }

Option Verb::option(const std::string& names, std::string& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
Option Verb::option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
Option Verb::option(const std::string& names, int& value, const std::string& help) { return Option(app_->add_option(names, value, help)); }
Option Verb::option(const std::string& names, int64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
Option Verb::option(const std::string& names, double& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
void Verb::flag(const std::string& names, bool& value, const std::string& help) { app_->add_flag(names, value, help); }

void Verb::settings(std::vector<std::string>& sets) {
  option("--set", sets, "path=value of a setting").take_all();
  method(sets);
}
// Options are read in the order in which they were declared, so `sets` is complete here.
void Verb::method(std::vector<std::string>& sets) {
  const auto add = [&sets](const std::string& name) { sets.insert(sets.begin(), "method=" + name); };
  app_->add_option_function<std::string>(
      "--method", add, "method by name, as adamw, galore, comera, or several: comera+adam8bit+mesa; settings of --set come after it");
}

void Verb::does(std::function<int()> action) {
  app_->callback([context = context_, action = std::move(action)] { context->action = action; });
}

}  // namespace comera::cli
