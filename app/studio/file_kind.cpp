#include "app/studio/file_kind.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/criteo_pack.h"
#include "core/data/datasets.h"
#include "core/data/documents.h"
#include "core/data/parquet.h"
#include "core/data/text_lines.h"
#include "core/store/tfevents.h"
#include "core/train/model_import.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;
using namespace std::string_view_literals;

bool has_events(const fs::path& folder, int deeper) {
  std::error_code error;
  for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) ? deeper > 0 && has_events(it->path(), deeper - 1)
                                  : it->path().filename().string().find("tfevents") != std::string::npos)
      return true;
  }
  return false;
}

FileKind kind_of_folder(const std::string& path) {
  try {
    find_data_file({.path = path});
    return FileKind::data;
  } catch (const Error&) {
  }
  if (is_model_folder(path)) return FileKind::weights;
  if (has_events(path, 1)) return FileKind::events;
  return is_folder_of_texts(path) ? FileKind::data : FileKind::folder;
}

// IDX header: unsigned bytes in three dimensions are images.
bool is_images(std::string_view head) { return head.starts_with("\0\0\x08\x03"sv); }

bool is_packed_images(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::array<char, 4> head{};
  return file && gzread(file.get(), head.data(), head.size()) == static_cast<int>(head.size()) && is_images({head.data(), head.size()});
}

// Begins with `{`, after white space and comments.
bool is_json(std::string_view head) {
  for (;;) {
    head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
    if (!head.starts_with("//") && !head.starts_with("/*")) return head.starts_with("{");
    const std::string_view closing = head[1] == '*' ? "*/" : "\n";
    const size_t end = head.find(closing, 2);
    if (end == std::string_view::npos) return false;
    head.remove_prefix(end + closing.size());
  }
}

// The first line names a column `step` and at least one more.
bool is_table(std::string_view head) {
  if (head.find('\0') != std::string_view::npos) return false;
  std::istringstream first{std::string(head.substr(0, head.find('\n')))};
  std::vector<std::string> columns;
  try {
    if (!CsvReader(first).next(columns) || columns.size() < 2) return false;
  } catch (const Error&) {
    return false;
  }
  return std::any_of(columns.begin(), columns.end(), [](std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name == "step";
  });
}

bool is_texts(const std::string& path) {
  try {
    const MappedFile file(path);
    return TextLayout(path, file.bytes()).first_row() < file.bytes().size();
  } catch (const Error&) {
    return false;
  }
}

bool is_clicks(const std::string& path) {
  try {
    return CriteoPack::is(MappedFile(path).bytes());
  } catch (const Error&) {
    return false;
  }
}

bool is_running_text(const std::string& path, std::string_view head) {
  return fs::path(path).extension() == ".txt" && !head.empty() && head.find('\0') == std::string_view::npos;
}

// Columns of any name and a row, which the form of a new run then asks for. A row may be as long as a text.
bool has_columns(const std::string& path) {
  const std::string end = fs::path(path).extension().string();
  if (end != ".csv" && end != ".tsv" && end != ".jsonl") return false;
  std::unique_ptr<const MappedFile> file;
  try {
    file = std::make_unique<const MappedFile>(path);
  } catch (const Error&) {
    return false;
  }
  const std::string_view bytes = file->bytes(), first = bytes.substr(0, bytes.find('\n'));
  if (first.find('\0') != std::string_view::npos || first.size() + 1 >= bytes.size()) return false;
  if (end == ".csv") return first.find_first_of(",;") != std::string_view::npos && std::count(first.begin(), first.end(), '"') % 2 == 0;
  return (end == ".tsv" && first.find('\t') != std::string_view::npos) || (end == ".jsonl" && first.starts_with("{"));
}

}  // namespace

FileKind kind_of_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return kind_of_folder(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileKind::missing;
  std::array<char, 4096> bytes{};
  file.read(bytes.data(), bytes.size());
  const std::string_view head(bytes.data(), static_cast<size_t>(file.gcount()));
  if (head.starts_with("SQLite format 3\0"sv)) return FileKind::store;
  // safetensors: the size of the header in 8 bytes, whose upper ones are 0, then a JSON object.
  if (head.size() > 9 && head[8] == '{' && head[6] == 0 && head[7] == 0) return FileKind::weights;
  if (is_images(head) || (head.starts_with("\x1f\x8b") && is_packed_images(path))) return FileKind::data;
  if (head.starts_with("PAR1") && is_parquet(path)) return FileKind::data;
  if (looks_like_tfevents(path)) return FileKind::events;
  if (is_table(head)) return FileKind::table;
  if (is_texts(path) || has_columns(path) || is_clicks(path) || is_running_text(path, head)) return FileKind::data;
  return is_json(head) ? FileKind::config : FileKind::other;
}

}  // namespace comera::studio
