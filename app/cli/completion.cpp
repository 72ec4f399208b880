// comera completion bash | zsh | fish: a completion script, generated from the verbs and options.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/cli/cli.h"

namespace comera::cli {
namespace {

std::string options_of(const CLI::App* app) {
  std::string words;
  for (const CLI::Option* option : app->get_options())
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  return words;
}

std::string verbs_of(const CLI::App* app) {
  std::string words;
  for (const CLI::App* verb : app->get_subcommands({})) words += (words.empty() ? "" : " ") + verb->get_name();
  return words;
}

void print_bash(const CLI::App* app, std::ostream& out) {
  out << "_comera() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" verb=\"${COMP_WORDS[1]}\" words\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='"
      << verbs_of(app) << "'\n  else case \"$verb\" in\n";
  for (const CLI::App* verb : app->get_subcommands({}))
    out << "    " << verb->get_name() << ") words='" << verbs_of(verb) << " " << options_of(verb) << " " << options_of(app) << "' ;;\n";
  out << "  esac; fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n}\ncomplete -F _comera comera\n";
}

std::string zsh_quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// Works both as a file `_comera` in $fpath, where it is the body of the function, and with `source`.
void print_zsh(const CLI::App* app, std::ostream& out) {
  out << "#compdef comera\n_comera() {\n  local -a verbs\n  if (( CURRENT == 2 )); then\n    verbs=(\n";
  for (const CLI::App* verb : app->get_subcommands({}))
    out << "      " << zsh_quoted(verb->get_name() + ":" + verb->get_description()) << "\n";
  out << "    )\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* verb : app->get_subcommands({}))
    out << "    " << verb->get_name() << ") compadd -- " << verbs_of(verb) << " " << options_of(verb) << " " << options_of(app) << " ;;\n";
  out << "  esac\n  _files\n}\nif [ \"$funcstack[1]\" = _comera ]; then _comera \"$@\"; else compdef _comera comera; fi\n";
}

void print_fish(const CLI::App* app, std::ostream& out) {
  for (const CLI::App* verb : app->get_subcommands({})) {
    const std::string about = verb->get_description();
    out << "complete -c comera -n __fish_use_subcommand -a " << verb->get_name() << " -d '" << about << "'\n";
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames())
        out << "complete -c comera -n '__fish_seen_subcommand_from " << verb->get_name() << "' -l " << name << "\n";
  }
}

}  // namespace

void add_completion(Verb& program, Context& context) {
  Verb verb = program.verb("completion", "print a completion script for bash, zsh or fish");
  const auto shell = std::make_shared<std::string>();
  verb.option("shell", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  verb.does([&app = program.app(), &context, shell] {
    std::ostringstream script;
    if (*shell == "fish") print_fish(&app, script);
    if (*shell == "zsh") print_zsh(&app, script);
    if (*shell == "bash") print_bash(&app, script);
    if (context.json)
      print_json({{"shell", *shell}, {"script", script.str()}});
    else
      std::cout << script.str();
    return 0;
  });
}

}  // namespace comera::cli
