// Keeps the program alive where a mapped file is cut while it is read: the system answers a read behind the new end of the file with the
// signal SIGBUS, which ends a process that has no handler for it.
#pragma once
#include <cstddef>

namespace comera {

// Guards a mapping as long as it lives. A read behind the end of the file gives zeros, and cut() is true from then on. Thread: cut() from
// any. At most 1,024 mappings are guarded at once; further ones are not.
class MappingGuard {
 public:
  MappingGuard(const char* begin, size_t size);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  bool cut() const;

 private:
  int place_ = -1;  // in the list that the handler reads; -1: not guarded
};

}  // namespace comera
