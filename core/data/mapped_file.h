// A whole file as read-only memory: rows are read on demand, and a set may be larger than memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/mapping_guard.h"

namespace comera {

// By what a file that was written in place is told from the one that was read.
struct FileState {
  int64_t bytes = 0, written_ns = 0;  // since 1970
  bool operator==(const FileState&) const = default;
};

// Any thread may read. Where another program writes the file in place its new content is read; behind its new end zeros.
class MappedFile {
 public:
  // Throws Error(not_found) when there is no such file, Error(config) when it is empty or not a regular file,
  // Error(storage) when the system cannot read it.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_, size_}; }
  const FileState& state() const { return state_; }  // as it was when it was mapped
  // Throws Error(config) where the file was written since. A file that was replaced by another one of its name is the one that was mapped.
  void check_unchanged() const;

 private:
  const std::string path_;
  const int file_;
  FileState state_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  std::optional<MappingGuard> guard_;
};

// Error(config) of data that were written while they are in use.
[[noreturn]] void data_have_changed(const std::string& path, const FileState& then, const FileState& now);

}  // namespace comera
