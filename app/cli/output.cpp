// Tables, JSON documents, errors and files, shared by all verbs.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "app/cli/cli.h"
#include "core/base/numbers.h"

namespace comera::cli {

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

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
  const auto print = [&](const std::vector<std::string>& row, bool bold = false) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(width[i] - row[i].size() + 2, ' ');
    }
    std::cout << (bold ? "\x1b[1m" + line + "\x1b[0m" : line) << "\n";
  };
  print(header, use_color(context, STDOUT_FILENO));
  for (const auto& row : rows) print(row);
}

void note(const Context& context, const std::string& line) {
  if (!context.quiet) std::cerr << line << "\n";
}

namespace {
bool is_terminal(int file) {
  const char* term = std::getenv("TERM");
  return isatty(file) && !(term && std::string(term) == "dumb");
}
}  // namespace

bool stderr_is_terminal() { return is_terminal(STDERR_FILENO); }

bool use_color(const Context& context, int file) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  if (context.no_color || set("NO_COLOR")) return false;
  return set("FORCE_COLOR") || is_terminal(file);
}

double parse_duration(const std::string& text) {
  if (const auto seconds = read_duration(text)) return *seconds;
  throw Error(ErrorCode::usage, "'" + text + "' is not a duration", "a duration is a number of seconds (s), minutes (m) or hours (h)",
              "for example 90s, 30m or 1.5h");
}

int64_t parse_bytes(const std::string& text) {
  if (const auto bytes = read_bytes(text)) return *bytes;
  throw Error(ErrorCode::usage, "'" + text + "' is not a size of memory", "a size is a number of bytes, KiB, MiB, GiB, kB, MB or GB",
              "for example 64MiB");
}

void check_stdout(const Context& context, const std::string& output, const std::string& option) {
  if (context.json && output == "-")
    throw Error(ErrorCode::usage, "--json and the data would both go to stdout", "they would be mixed",
                "write the data to a file with " + option + ", or leave out --json");
}

namespace {
// Each part of an error is one line, whatever it contains (a file name may have a line break).
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 32; }, ' ');
  return text;
}
}  // namespace

int report(const Context& context, int code, const std::string& what, const std::string& why, const std::string& hint) {
  if (context.json) {
    print_json({{"error", {{"code", code}, {"message", one_line(what)}, {"why", one_line(why)}, {"hint", one_line(hint)}}}});
    if (std::cout) return code;  // otherwise stdout is unusable: use stderr
  }
  std::cerr << (use_color(context) ? "\x1b[1;31merror:\x1b[0m " : "error: ") << one_line(what) << "\n";
  if (!why.empty()) std::cerr << "  why: " << one_line(why) << "\n";
  if (!hint.empty()) std::cerr << "  try: " << one_line(hint) << "\n";
  return code;
}

// ---- files -----------------------------------------------------------------------------------------------------------

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (is_stdout()) return;
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) part_ = path_ + ".part-" + std::to_string(::getpid());
  errno = 0;
  file_.open(part_.empty() ? path_ : part_, std::ios::binary);
  if (!file_) fail();
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!part_.empty()) std::filesystem::remove(part_, ignored);
}

std::ostream& OutputFile::stream() {
  errno = 0;
  return is_stdout() ? std::cout : file_;
}

void OutputFile::finish() {
  if (!stream().flush()) fail();
  if (is_stdout()) return;
  file_.close();
  if (!file_ || (!part_.empty() && std::rename(part_.c_str(), path_.c_str()) != 0)) fail();
  part_.clear();
}

void fail_to_write(const std::string& where) {
  const int error = errno;
  throw Error(ErrorCode::storage, "cannot write " + where, error ? std::strerror(error) : "the disk may be full",
              error == ENOSPC || error == 0 ? "free some space, or choose another place" : "choose another path");
}

void OutputFile::fail() const { fail_to_write(is_stdout() ? "to stdout" : path_); }

// ---- stdin -----------------------------------------------------------------------------------------------------------

InputFile::InputFile(const std::string& path) : path_(path), ours_(path == "-") {
  if (!ours_) return;
  path_ = (std::filesystem::temp_directory_path() / ("comera-stdin-" + std::to_string(::getpid()))).string();
  std::ofstream file(path_, std::ios::binary);
  if (std::cin.peek() != std::char_traits<char>::eof()) file << std::cin.rdbuf();
  file.close();
  if (file) return;
  const std::string why = std::strerror(errno);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  throw Error(ErrorCode::storage, "cannot store the data from stdin in " + path_, why, "set TMPDIR to a folder with room");
}

InputFile::~InputFile() {
  std::error_code ignored;
  if (ours_) std::filesystem::remove(path_, ignored);
}

}  // namespace comera::cli
