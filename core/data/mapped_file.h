// A whole file as read-only memory: rows are read on demand, and a set may be larger than memory.
#pragma once
#include <string>
#include <string_view>

namespace comera {

// Immutable; any thread may read. The file must not shrink while it is mapped.
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

 private:
  const std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace comera
