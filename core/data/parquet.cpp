#include "core/data/parquet.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/module.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kParquetFile = "libcomera_parquet.so";
constexpr const char* kParquetEnding = ".parquet";
constexpr std::string_view kParquetMark = "PAR1";  // at both ends of a file

struct Arrow {
  ParquetLibrary* name = nullptr;
  ParquetOpen* open = nullptr;
  std::string reason;
  std::string remedy = "run COMERA_ARROW=on cmake/setup.sh and build again, or write the rows as JSONL";
};

Arrow opened_arrow() {
  Arrow arrow;
  const std::string path = module_path(kParquetFile);
  if (path.empty()) {
    arrow.reason = std::string("not here: there is no ") + kParquetFile + " next to the program; it is built where Arrow is";
    return arrow;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open
  if (handle) {
    arrow.name = reinterpret_cast<ParquetLibrary*>(dlsym(handle, kParquetLibrary));
    arrow.open = reinterpret_cast<ParquetOpen*>(dlsym(handle, kParquetOpen));
  }
  if (!arrow.name || !arrow.open) {
    const char* why = dlerror();
    arrow = Arrow{.reason = "built in, but it does not load: " + std::string(why ? why : "another library of this name")};
  }
  return arrow;
}

Arrow arrow_here() {
  const char* wanted = std::getenv("COMERA_ARROW");
  if (wanted && std::string_view(wanted) == "off") return {.reason = "left out: COMERA_ARROW=off", .remedy = "unset COMERA_ARROW"};
  static const Arrow kOpened = opened_arrow();
  return kOpened;
}

// NAME-K-of-N: where K begins and how many digits it has; N. False for another name.
struct PartName {
  size_t begin = 0, digits = 0;
  int64_t number = 0, count = 0;
};
bool part_of(const std::string& name, PartName& part) {
  if (!name.ends_with(kParquetEnding)) return false;
  const std::string_view stem = std::string_view(name).substr(0, name.size() - std::string_view(kParquetEnding).size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number_at = [&](size_t begin, size_t end, int64_t& value) {
    if (begin == end ||
        !std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(begin), stem.begin() + static_cast<std::ptrdiff_t>(end), is_digit))
      return false;
    return std::from_chars(stem.data() + begin, stem.data() + end, value).ec == std::errc();
  };
  constexpr std::string_view kOf = "-of-";
  const size_t of = stem.rfind(kOf);
  if (of == std::string_view::npos) return false;
  const size_t dash = stem.substr(0, of).rfind('-');
  if (dash == std::string_view::npos) return false;
  part.begin = dash + 1, part.digits = of - part.begin;
  constexpr int64_t kMost = 100'000;
  return number_at(part.begin, of, part.number) && number_at(of + kOf.size(), stem.size(), part.count) && part.number < part.count &&
         part.count <= kMost;
}

void check_marks(const std::string& path, std::string_view bytes) {
  if (bytes.starts_with("PARE"))
    throw Error(ErrorCode::config, path + " is encrypted", "it begins with PARE, as encrypted Parquet files do",
                "write it without encryption");
  if (!bytes.starts_with(kParquetMark))
    throw Error(ErrorCode::config, path + " is not a Parquet file", "it does not begin with PAR1",
                "rename it if it is a text (.csv, .tsv, .jsonl), or get it again");
  if (!bytes.ends_with(kParquetMark) || bytes.size() < 3 * kParquetMark.size())
    throw Error(ErrorCode::config, path + " is cut off", "it does not end with PAR1, as a whole Parquet file does", "get the file again");
}

}  // namespace

ParquetStatus parquet_status() {
  const Arrow arrow = arrow_here();
  return arrow.open ? ParquetStatus{true, arrow.name(), ""} : ParquetStatus{false, "", arrow.reason};
}

bool is_parquet(const std::string& path) { return path.ends_with(kParquetEnding); }

std::vector<std::string> parquet_parts(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::string name = fs::path(path).filename().string();
  PartName part;
  if (!part_of(name, part)) return {path};
  std::vector<std::string> parts;
  for (int64_t k = 0; k < part.count; ++k) {
    std::string number = std::to_string(k);
    if (number.size() < part.digits) number.insert(0, part.digits - number.size(), '0');
    parts.push_back((folder / (name.substr(0, part.begin) + number + name.substr(part.begin + part.digits))).string());
    std::error_code ignored;
    if (!fs::exists(parts.back(), ignored))
      throw Error(ErrorCode::not_found, parts.back() + " is missing",
                  name + " is one of " + std::to_string(part.count) + " parts, which are read together",
                  "get all parts into one folder, or rename the one that shall stand alone");
  }
  return parts;
}

std::string find_parquet_part(const std::string& folder, const std::string& stem) {
  std::string first;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    PartName part;
    if (part_of(name, part) && name.substr(0, part.begin) == stem + "-" && (first.empty() || name < first)) first = name;
  }
  return first.empty() ? "" : (fs::path(folder) / first).string();
}

void damaged_parquet(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::config, path + " cannot be read as Parquet", why.empty() ? "it is damaged" : why, "get the file again");
}

std::unique_ptr<ParquetRows> open_parquet(const std::string& path) {
  check_marks(path, MappedFile(path).bytes());
  const Arrow arrow = arrow_here();
  if (!arrow.open)
    throw Error(ErrorCode::config, "this program cannot read " + path, "Arrow, which reads Parquet files, is " + arrow.reason,
                arrow.remedy);
  std::string why;
  std::unique_ptr<ParquetRows> rows(arrow.open(path, why));
  if (!rows) damaged_parquet(path, why);
  return rows;
}

}  // namespace comera
