// Whether the program that writes a run is alive, as the kernel knows it. A process number does not say: that of a process
// which died stays taken until its parent asks for it, and may be given to another one.
//
// Beside the store lies one file, STORE-writers, with 8 bytes a run: the process number of its last writer. A living writer
// holds a lock on its 8 bytes (of the open file, not of the process: F_OFD_SETLK), which the kernel drops when it dies. The
// file may be deleted at any time; a run without a lock there, as an older version writes it, counts by its process number.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace comera {

class WriterLock {
 public:
  // `run`: its key in the store. Null where another writer holds it, or where the system or the disk does not take it.
  static std::unique_ptr<WriterLock> take(const std::string& store, int64_t run);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  explicit WriterLock(int file) : file_(file) {}
  int file_;
};

// Whether the writer with these marks, as the table `runs` has them, is alive: fresh heartbeat, same boot, and its lock is
// held; without one, whether its process is there.
bool writer_alive(const std::string& store, int64_t run, double heartbeat, int64_t pid, const std::string& boot);

}  // namespace comera
