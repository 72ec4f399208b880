// Texts that a language model reads one behind the other: a text file as one, the rows of a table, or the files of a folder.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text_lines.h"
#include "core/data/tokenizer.h"

namespace comera {

// Places are bytes of all texts together. Immutable after construction; any thread may read.
class Documents {
 public:
  virtual ~Documents() = default;
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  const std::string& path() const { return path_; }                // file or folder
  const std::string& fingerprint() const { return fingerprint_; }  // sha256 (hex) of all that decides the texts
  size_t size() const { return size_; }                            // bytes
  // The first place from `from` on where they may be cut: the ids of both parts, one behind the other, are those of the whole.
  virtual size_t cut(const Tokenizer& tokenizer, size_t from) const = 0;
  // Ids of the texts from `begin` to `end`, places that cut() gives. Throws Error(config) for a row that is not right.
  virtual std::vector<int32_t> ids(const Tokenizer& tokenizer, size_t begin, size_t end) const = 0;
  // The text, where there is only one and nothing stands around it; else empty.
  virtual std::string_view only_text() const { return {}; }
  // Throws Error(config) where the file was written since it was opened.
  virtual void check_unchanged() const {}

 protected:
  explicit Documents(std::string path) : path_(std::move(path)) {}
  const std::string path_;
  std::string fingerprint_;
  size_t size_ = 0;
};

// One text; no special tokens are added. `text` must stay; its sha256 (hex) is `sha`.
std::unique_ptr<Documents> one_text(const std::string& path, std::string_view text, const std::string& sha);
// A text file. Throws as MappedFile.
std::unique_ptr<Documents> text_file(const std::string& path);
// The texts of a column of a TSV, CSV, JSONL or Parquet file, each as Tokenizer::document(). Empty ones are left out. Throws as TextFile
// and TextLayout do, and Error(config) for a pair of columns. `progress`: of a Parquet file that is read for the first time.
std::unique_ptr<Documents> column_of_texts(const std::string& path, const ColumnNames& columns,
                                           const std::function<void(double)>& progress = {});
// The files of a folder and of folders in it, in the order of their names, each as Tokenizer::document(). Left out are empty files, those
// with a zero byte, names that begin with a dot, and folders that may not be read. Throws Error(config) where no file is left.
std::unique_ptr<Documents> folder_of_texts(const std::string& folder);
bool is_folder_of_texts(const std::string& folder);

}  // namespace comera
