// How numbers, tables and documents look; the same for every verb.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/cli/cli.h"

namespace comera::cli {

void print_json(Json document) {
  Json out = {{"schema_version", kSchemaVersion}};
  for (auto& item : document.items()) out[item.key()] = std::move(item.value());
  std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
}

void print_table(const Context& context, const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  if (context.plain) {
    for (const auto& row : rows)
      for (size_t i = 0; i < row.size(); ++i) std::cout << row[i] << (i + 1 < row.size() ? "\t" : "\n");
    return;
  }
  std::vector<size_t> width;
  for (const std::string& title : header) width.push_back(title.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size() && i < width.size(); ++i) width[i] = std::max(width[i], row[i].size());
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(width[i] - row[i].size() + 2, ' ');
    }
    std::cout << line << "\n";
  };
  print(header);
  for (const auto& row : rows) print(row);
}

void note(const Context& context, const std::string& line) {
  if (!context.quiet) std::cerr << line << "\n";
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && !(term && std::string(term) == "dumb");
}

bool use_color(const Context& context) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  if (context.no_color || set("NO_COLOR")) return false;
  return set("FORCE_COLOR") || stderr_is_terminal();
}

double parse_duration(const std::string& text) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = value < 0 ? "?" : text.substr(used);
  const double factor = unit == "" || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (factor == 0) throw Error(ErrorCode::usage, "'" + text + "' is not a time", "", "for example 90s, 30m or 1.5h");
  return value * factor;
}

void check_stdout(const Context& context, const std::string& output) {
  if (context.json && output == "-")
    throw Error(ErrorCode::usage, "--json and the data would both go to stdout", "no one could tell them apart", "write the data to a file with -o FILE, or leave out --json");
}

}  // namespace comera::cli
