#include "core/data/text_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/packed_file.h"
#include "core/data/parquet.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"

namespace comera {
namespace {

// Of a packed file; the rows follow, then the columns that were left out and their types, a JSON object.
struct TextHead {
  char magic[8] = {'p', 'a', 'r', 'q', 'u', 'e', '0', '1'};
  char key[64] = {};
  int64_t bytes = 0;  // of the rows
  uint64_t sum = 0xcbf29ce484222325u;
};

// Finds damage (FNV-1a).
uint64_t text_sum(std::string_view bytes, uint64_t sum) {
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

std::string json_string(const std::string& text) {
  std::string buffer;
  return nlohmann::json(valid_utf8(text, buffer)).dump();
}

// For a line of an error.
std::string shown_name(std::string text) {
  constexpr size_t kShown = 120;
  if (text.size() > kShown) text.resize(kShown);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return shown_name(all);
}

struct ParquetParts {
  std::vector<std::string> paths;
  std::vector<std::string> texts;               // columns that are written
  std::map<std::string, std::string> left_out;  // and those that are not
  int64_t count = 0;                            // rows of all

  explicit ParquetParts(const std::vector<std::string>& files) : paths(files) {
    for (const std::string& path : paths) {
      const std::unique_ptr<ParquetRows> rows = open_parquet(path);
      std::vector<std::string> own;
      for (const ParquetColumn& column : rows->columns()) {
        if (column.is_text)
          own.push_back(column.name);
        else
          left_out.emplace(column.name, column.type);
      }
      if (own.empty())
        throw Error(ErrorCode::config, path + " has no column of texts or numbers",
                    left_out.empty() ? "it has no columns" : "all are nested or hold bytes", "write the texts into columns of their own");
      if (!texts.empty() && own != texts)
        throw Error(ErrorCode::config, path + " does not fit the part before it",
                    "it has the columns " + listed(own) + "; the other: " + listed(texts), "get all parts again");
      texts = own;
      count += rows->rows();
    }
    if (count <= 0)
      throw Error(ErrorCode::config, paths.front() + " has no rows", "only its columns: " + listed(texts), "get the file again");
  }

  // Each row as a line of JSON.
  void write(const std::function<void(const std::string&)>& each, const std::function<void(double)>& progress) {
    std::vector<std::string> keys;
    for (const std::string& name : texts) keys.push_back((keys.empty() ? "{" : ", ") + json_string(name) + ": ");
    std::vector<std::string> cells;
    std::string line;
    int64_t done = 0;
    for (const std::string& path : paths) {
      const std::unique_ptr<ParquetRows> rows = open_parquet(path);
      std::string why;
      int64_t own = 0;
      for (; rows->next(cells, why); ++own) {
        CHECK(cells.size() == keys.size());
        line.clear();
        for (size_t i = 0; i < cells.size(); ++i) line.append(keys[i]).append(json_string(cells[i]));
        each(line += "}\n");
        constexpr int64_t kOften = 4096;
        if (progress && ++done % kOften == 0) progress(static_cast<double>(done) / static_cast<double>(count));
      }
      if (!why.empty() || own != rows->rows())
        damaged_parquet(path, !why.empty() ? why : "it has " + std::to_string(own) + " rows and says " + std::to_string(rows->rows()));
    }
    if (progress) progress(1);
  }
};

}  // namespace

TextFile::TextFile(const std::string& path, const std::function<void(double)>& progress) : path_(path) {
  if (!is_parquet(path)) {
    file_ = std::make_unique<const MappedFile>(path);
    bytes_ = file_->bytes();
    return;
  }
  const std::vector<std::string> paths = parquet_parts(path);
  Sha256 content;
  for (const std::string& part : paths) content.update(sha256_hex(MappedFile(part).bytes()));
  const std::string key = content.hex();
  try {
    open_packed(
        "parquet-" + key.substr(0, 32) + ".pack", path, [&](const std::string& packed) { return open(packed, key); },
        [&](PackedOutput& out) {
          ParquetParts parts(paths);
          TextHead head;
          std::memcpy(head.key, key.data(), sizeof head.key);
          out.write(&head, sizeof head);
          parts.write(
              [&](const std::string& line) {
                head.bytes += static_cast<int64_t>(line.size());
                head.sum = text_sum(line, head.sum);
                out.write(line.data(), line.size());
              },
              progress);
          nlohmann::json left_out = nlohmann::json::object();
          std::string buffer;
          for (const auto& [name, type] : parts.left_out) left_out[std::string(valid_utf8(name, buffer))] = type;
          const std::string tail = left_out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
          head.sum = text_sum(tail, head.sum);
          out.write(tail.data(), tail.size());
          out.write_at_begin(&head, sizeof head);
        });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::storage) throw;
    ParquetParts parts(paths);
    held_.clear();
    parts.write([&](const std::string& line) { held_ += line; }, progress);
    bytes_ = held_;
    left_out_ = parts.left_out;
  }
}

bool TextFile::open(const std::string& packed, const std::string& key) {
  std::unique_ptr<const MappedFile> file;
  try {
    file = std::make_unique<const MappedFile>(packed);
  } catch (const Error&) {  // one that cannot be read is made again
    return false;
  }
  const std::string_view all = file->bytes();
  TextHead head;
  const std::string magic(head.magic, sizeof head.magic);
  const uint64_t none = head.sum;
  if (all.size() < sizeof head) return false;
  std::memcpy(&head, all.data(), sizeof head);
  const std::string_view content = all.substr(sizeof head);
  if (magic != std::string_view(head.magic, sizeof head.magic) || key != std::string_view(head.key, sizeof head.key) || head.bytes < 0 ||
      static_cast<size_t>(head.bytes) > content.size() || text_sum(content, none) != head.sum)
    return false;
  const auto left_out = try_parse_json(content.substr(static_cast<size_t>(head.bytes)));
  if (!left_out.is_object()) return false;
  for (const auto& [name, type] : left_out.items()) left_out_[name] = type.is_string() ? type.get<std::string>() : std::string();
  bytes_ = content.substr(0, static_cast<size_t>(head.bytes));
  file_ = std::move(file);
  return true;
}

std::string_view TextFile::bytes_with(const ColumnNames& wanted) const {
  for (const std::string* column : {&wanted.first, &wanted.second, &wanted.label})
    if (const auto found = left_out_.find(*column); found != left_out_.end())
      throw Error(ErrorCode::config, path_ + ": column '" + *column + "' cannot be read as text",
                  "its type is " + shown_name(found->second),
                  "name a column of texts or numbers, or write the texts into a column of their own");
  return bytes_;
}

void TextFile::bad_line(size_t offset, const std::string& what, const std::string& why, const std::string& hint) const {
  throw Error(ErrorCode::config, path_ + ":" + std::to_string(line_number(bytes_, offset)) + ": " + what, why, hint);
}

void TextFile::bad_row(size_t offset, size_t next, const std::string& why) const {
  const bool last = next == bytes_.size() && bytes_.back() != '\n';
  bad_line(offset, "not a row of this file", why,
           last ? "the file ends in the middle of this line: get it again" : "correct or remove this line");
}

}  // namespace comera
