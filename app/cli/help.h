// The output of --help: description and examples first, then options.
#pragma once
#include <CLI/CLI.hpp>

namespace comera::cli {

// For the whole program. Call before verbs are added: they inherit it.
void set_help(CLI::App& app);

}  // namespace comera::cli
