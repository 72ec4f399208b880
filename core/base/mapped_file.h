// A whole file as read-only memory: it is read on demand, and may be larger than memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/mapping_guard.h"

namespace comera {

// Size and modification time of a file: they differ after another program has written it in place.
struct FileState {
  int64_t bytes = 0, modified_ns = 0;  // since 1970
  bool operator==(const FileState&) const = default;
};

// Any thread may read. After another program has written the file in place, bytes() has its new content, and zeros behind its new end.
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
  // Throws Error(config), with the advice, if the file was written in place since. Replacing it by another file of the same name changes
  // nothing here.
  void check_unchanged(const std::string& advice) const;

 private:
  const std::string path_;
  const int file_;
  FileState state_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  std::optional<MappingGuard> guard_;
};

// Throws Error(config): the file was changed while it was in use.
[[noreturn]] void file_was_changed(const std::string& path, const FileState& then, const FileState& now, const std::string& advice);

}  // namespace comera
