// What --help prints: first what a verb does and examples of it, then its options.
#pragma once
#include <CLI/CLI.hpp>

namespace comera::cli {

// Of the whole program; before verbs are added to it, which take it over.
void set_help(CLI::App& app);

}  // namespace comera::cli
