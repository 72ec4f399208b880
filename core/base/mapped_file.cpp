#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace comera {
namespace {

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw Error(error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::storage, "cannot read " + path, std::strerror(error),
              "check the path and the file's rights");
}

// O_NONBLOCK: opening a named pipe must not wait for a writer; it is refused below.
int open_to_read(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) cannot_read(path, errno);
  return file;
}

FileState state_of(const struct stat& status) {
  return {status.st_size, int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

void file_was_changed(const std::string& path, const FileState& then, const FileState& now, const std::string& advice) {
  throw Error(ErrorCode::config, path + " was changed while it was in use",
              then.bytes == now.bytes ? "its modification time is different"
                                      : "it had " + std::to_string(then.bytes) + " bytes, now " + std::to_string(now.bytes),
              advice);
}

MappedFile::MappedFile(const std::string& path) : path_(path), file_(open_to_read(path)) {
  try {
    struct stat status;
    if (::fstat(file_, &status) != 0) cannot_read(path, errno);
    if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::config, path + " is not a file", "it is a folder or a device", "name a file");
    if (status.st_size == 0) throw Error(ErrorCode::config, path + " is empty", "it has 0 bytes", "get the file again");
    state_ = state_of(status);
    size_ = static_cast<size_t>(status.st_size);
    void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
    if (data == MAP_FAILED) cannot_read(path, errno);
    data_ = static_cast<const char*>(data);
    guard_.emplace(data_, size_);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

MappedFile::~MappedFile() {
  guard_.reset();
  ::munmap(const_cast<char*>(data_), size_);
  ::close(file_);
}

void MappedFile::check_unchanged(const std::string& advice) const {
  struct stat status;
  if (::fstat(file_, &status) != 0) cannot_read(path_, errno);
  const FileState now = state_of(status);
  if (now != state_ || guard_->cut()) file_was_changed(path_, state_, now, advice);
}

}  // namespace comera
