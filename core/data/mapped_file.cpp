#include "core/data/mapped_file.h"

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

struct Descriptor {  // closes on every way out of the constructor below
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; it is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) cannot_read(path, errno);
  struct stat status;
  if (::fstat(file.fd, &status) != 0) cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::config, path + " is not a file", "it is a folder or a device", "name a data file");
  if (status.st_size == 0) throw Error(ErrorCode::config, path + " is empty", "it has 0 bytes", "get the file again");
  size_ = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) cannot_read(path, errno);
  data_ = static_cast<const char*>(data);
}

MappedFile::~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }

}  // namespace comera
