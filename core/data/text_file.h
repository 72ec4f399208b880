// A file of texts as bytes that rows are parsed from: a TSV, CSV or JSONL file as it is, the rows of a Parquet file as JSONL.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mapped_file.h"
#include "core/data/dataset.h"
#include "core/data/text_lines.h"

namespace comera {

// A Parquet file, with all its parts, is decoded once: one JSON object a row, in the order of the file, each column that can be written as
// text a string, "" where there is no value, U+FFFD for what is not UTF-8. That is kept in the cache folder by the sha256 of the parts and
// mapped; memory holds a few rows, or all text where nothing can be written. Immutable after construction; any thread may read.
class TextFile {
 public:
  // `progress` gets the share of the rows that are decoded, 0..1. Throws Error as MappedFile, parquet_parts and open_parquet do, and
  // Error(config) where no column can be written as text, there is no row, or parts have different columns.
  explicit TextFile(const std::string& path, const std::function<void(double)>& progress = {});

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }
  void check_unchanged() const {  // MappedFile's
    if (file_) file_->check_unchanged(kChangedData);
  }
  // The bytes, too. Throws Error(config) for a column that is in the file, but cannot be written as text.
  std::string_view bytes_with(const ColumnNames& wanted) const;
  // Throw Error(config) for the line at `offset`. bad_row(): it is not a row because of `why`; the next one starts at `next`.
  [[noreturn]] void bad_line(size_t offset, const std::string& what, const std::string& why, const std::string& hint) const;
  [[noreturn]] void bad_row(size_t offset, size_t next, const std::string& why) const;

 private:
  bool open(const std::string& packed, const std::string& key);

  const std::string path_;
  std::unique_ptr<const MappedFile> file_;
  std::string held_;  // of a Parquet file whose text could not be written
  std::string_view bytes_;
  std::map<std::string, std::string> left_out_;  // columns that are no text, and their types
};

}  // namespace comera
