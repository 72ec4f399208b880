#include "core/store/writer_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "core/store/process.h"

namespace comera {
namespace {

constexpr int64_t kPidBytes = sizeof(int64_t);

// Beside the file itself, as SQLite does: a store may be named by a link.
std::string path_of(const std::string& store) {
  std::error_code error;
  const auto file = std::filesystem::canonical(store, error);
  return (error ? store : file.string()) + "-writers";
}

struct flock range_of(int64_t run) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = run * kPidBytes;
  range.l_len = kPidBytes;
  return range;
}

enum class Held { yes, no, unknown };

// Of the lock of the writer with this process number.
Held lock_of(const std::string& store, int64_t run, int64_t pid) {
  const int file = ::open(path_of(store).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Held::unknown;
  int64_t last = 0;
  struct flock range = range_of(run);
  const bool known = ::pread(file, &last, kPidBytes, range.l_start) == kPidBytes && last == pid && ::fcntl(file, F_OFD_GETLK, &range) == 0;
  ::close(file);
  return !known ? Held::unknown : range.l_type == F_UNLCK ? Held::no : Held::yes;
}

}  // namespace

std::unique_ptr<WriterLock> WriterLock::take(const std::string& store, int64_t run) {
  const int file = ::open(path_of(store).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return nullptr;
  std::unique_ptr<WriterLock> lock(new WriterLock(file));
  struct flock range = range_of(run);
  const int64_t pid = own_pid();
  if (::fcntl(file, F_OFD_SETLK, &range) != 0 || ::pwrite(file, &pid, kPidBytes, range.l_start) != kPidBytes) return nullptr;
  return lock;
}

WriterLock::~WriterLock() { ::close(file_); }

bool writer_alive(const std::string& store, int64_t run, double heartbeat, int64_t pid, const std::string& boot) {
  if (!(std::fabs(now_s() - heartbeat) < kHeartbeatFreshS)) return false;  // NaN is not fresh; a clock set back is not either
  if (boot != boot_id() || pid <= 0) return false;
  const Held held = lock_of(store, run, pid);
  if (held != Held::unknown) return held == Held::yes;
  return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
}

}  // namespace comera
