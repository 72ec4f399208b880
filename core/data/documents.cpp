#include "core/data/documents.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/sha256.h"
#include "core/data/text_file.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

class OneText final : public Documents {
 public:
  OneText(const std::string& path, std::string_view text, const std::string& sha) : Documents(path), text_(text) { describe(sha); }
  explicit OneText(const std::string& path) : Documents(path), file_(std::make_unique<const MappedFile>(path)), text_(file_->bytes()) {
    describe(sha256_hex(text_));
  }
  size_t cut(const Tokenizer& tokenizer, size_t from) const override { return tokenizer.cut(text_, from); }
  Ids ids(const Tokenizer& tokenizer, size_t begin, size_t end) const override {
    return tokenizer.encode(text_.substr(begin, end - begin));
  }
  std::string_view only_text() const override { return text_; }
  void check_unchanged() const override {
    if (file_) file_->check_unchanged(kChangedData);
  }

 private:
  void describe(const std::string& sha) {
    size_ = text_.size();
    fingerprint_ = sha;
  }
  std::unique_ptr<const MappedFile> file_;
  const std::string_view text_;
};

class ColumnOfTexts final : public Documents {
 public:
  ColumnOfTexts(const std::string& path, const ColumnNames& columns, const std::function<void(double)>& progress)
      : Documents(path), file_(path, progress), layout_(path, file_.bytes_with(columns), columns, false) {
    if (layout_.pair())
      throw Error(ErrorCode::config, path + " gives pairs of texts", "a language model reads one column",
                  "set data.text_column, and no data.second_column");
    size_ = file_.bytes().size();
    fingerprint_ = sha256_hex(sha256_hex(file_.bytes()) + "/texts of " + layout_.text_column());
    size_t next = 0;
    for (size_t row = layout_.first_row(); row < size_; row = next) {
      layout_.row_at(file_.bytes(), row, next);
      if (row >= (places_.empty() ? 0 : places_.back()) + kApart) places_.push_back(row);
    }
  }
  void check_unchanged() const override { file_.check_unchanged(); }
  size_t cut(const Tokenizer&, size_t from) const override {
    const auto place = std::lower_bound(places_.begin(), places_.end(), from);
    return place == places_.end() ? size_ : *place;
  }
  Ids ids(const Tokenizer& tokenizer, size_t begin, size_t end) const override {
    Ids all;
    TextFields fields;
    size_t next = 0;
    for (size_t row = std::max(begin, layout_.first_row()); row < end; row = next) {
      std::string why;
      if (!layout_.parse(layout_.row_at(file_.bytes(), row, next), fields, why)) file_.bad_row(row, next, why);
      if (fields.first.empty()) continue;
      const Ids own = tokenizer.document(fields.first);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

 private:
  static constexpr size_t kApart = 1 << 16;  // bytes between two places

  const TextFile file_;
  const TextLayout layout_;
  std::vector<size_t> places_;  // rows where the texts may be cut
};

bool has_zero(std::string_view bytes) { return bytes.find('\0') != std::string_view::npos; }

// Calls each(file) for every file with something in it, until it gives false.
template <class Each>
void each_file(const fs::path& folder, const Each& each) {
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, problem), end; !problem && at != end;
       at.increment(problem)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(".")) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(ignored) && at->file_size(ignored) > 0) {
      if (!each(at->path())) return;
    }
  }
}

class FolderOfTexts final : public Documents {
 public:
  explicit FolderOfTexts(const std::string& folder) : Documents(folder) {
    each_file(folder, [&](const fs::path& file) {
      files_.push_back({file.lexically_relative(folder).generic_string(), 0});
      return true;
    });
    std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) { return a.name < b.name; });
    Sha256 all;
    std::erase_if(files_, [&](File& file) {
      const MappedFile mapped(path_ + "/" + file.name);
      if (has_zero(mapped.bytes())) return true;
      size_ += mapped.bytes().size();
      file.end = size_;
      all.update(file.name + "\n" + sha256_hex(mapped.bytes()) + "\n");
      return false;
    });
    if (files_.empty())
      throw Error(ErrorCode::config, folder + " has no texts", "every file is empty, has a zero byte, or a name that begins with a dot",
                  "name a folder of text files");
    fingerprint_ = all.hex();
  }
  size_t cut(const Tokenizer&, size_t from) const override {
    const auto file = first_behind(from == 0 ? 0 : from - 1);
    return file == files_.end() ? size_ : file->end;
  }
  Ids ids(const Tokenizer& tokenizer, size_t begin, size_t end) const override {
    Ids all;
    for (auto file = first_behind(begin); file != files_.end() && file->end <= end; ++file) {
      const Ids own = tokenizer.document(MappedFile(path_ + "/" + file->name).bytes());
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

 private:
  struct File {
    std::string name;  // in the folder
    size_t end;        // place behind it
  };
  std::vector<File>::const_iterator first_behind(size_t place) const {
    return std::upper_bound(files_.begin(), files_.end(), place, [](size_t at, const File& file) { return at < file.end; });
  }
  std::vector<File> files_;
};

}  // namespace

std::unique_ptr<Documents> one_text(const std::string& path, std::string_view text, const std::string& sha) {
  return std::make_unique<OneText>(path, text, sha);
}

std::unique_ptr<Documents> text_file(const std::string& path) { return std::make_unique<OneText>(path); }

std::unique_ptr<Documents> column_of_texts(const std::string& path, const ColumnNames& columns,
                                           const std::function<void(double)>& progress) {
  return std::make_unique<ColumnOfTexts>(path, columns, progress);
}

std::unique_ptr<Documents> folder_of_texts(const std::string& folder) { return std::make_unique<FolderOfTexts>(folder); }

bool is_folder_of_texts(const std::string& folder) {
  bool found = false;
  each_file(folder, [&](const fs::path& file) {
    try {
      found = !has_zero(MappedFile(file.string()).bytes().substr(0, 4096));
    } catch (const Error&) {  // one that cannot be read: another may be
    }
    return !found;
  });
  return found;
}

}  // namespace comera
