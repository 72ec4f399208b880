#include "app/studio/log_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "app/studio/shown_run/run_view.h"
#include "core/base/error.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {

constexpr size_t kMostWaiting = 4 << 20;  // bytes; limits memory while the disk does not respond

const char* name_of(Level level) {
  constexpr const char* kNames[] = {"info", "good", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

std::string time_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

struct Descriptor {
  int file;
  ~Descriptor() {
    if (file >= 0) ::close(file);
  }
};

// Returns why writing failed; "" = success.
std::string append(const std::string& path, const std::string& text, int64_t most_bytes) {
  const auto why = [&](const char* what) { return std::string(what) + path + ": " + std::strerror(errno); };
  try {
    paths::ensure_folder_of(path);
  } catch (const Error& error) {
    return std::string(error.what()) + ": " + error.why();
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Descriptor log{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    if (log.file < 0) return why("cannot write ");
    ::flock(log.file, LOCK_EX);
    struct stat mine {
    }, there{};
    if (::fstat(log.file, &mine) != 0) return why("cannot write ");
    if (::stat(path.c_str(), &there) != 0 || there.st_ino != mine.st_ino || there.st_dev != mine.st_dev) continue;  // rotated meanwhile
    if (mine.st_size > 0 && mine.st_size + static_cast<int64_t>(text.size()) > most_bytes) {
      if (::rename(path.c_str(), (path + ".1").c_str()) != 0) return why("cannot rename ");
      continue;
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = ::write(log.file, text.data() + at, text.size() - at);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return why("cannot write ");
      at += static_cast<size_t>(wrote);
    }
    return "";
  }
  return "cannot write " + path + ": another program keeps replacing it";
}

}  // namespace

LogFile::LogFile(std::string path, int64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

LogFile::~LogFile() {
  thread_.request_stop();
  thread_.join();
}

void LogFile::write(Level level, const std::string& from, const std::string& text) {
  std::string line = std::string(name_of(level)) + "  " + from + "  " + text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  const std::lock_guard lock(mutex_);
  if (line == last_ || waiting_.size() > kMostWaiting) return;
  waiting_ += time_of_now() + "  " + line + "\n";
  last_ = std::move(line);
  asked_.notify_all();
}

std::string LogFile::take_problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

void LogFile::work(const std::stop_token& stop) {
  for (;;) {
    std::string text;
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, stop, [&] { return !waiting_.empty(); });
      if (waiting_.empty()) return;  // stopped, and all lines are written
      text = std::exchange(waiting_, {});
    }
    const std::string why = append(path_, text, most_bytes_);
    const std::lock_guard lock(mutex_);
    if (!why.empty() && !fails_) problem_ = why;
    fails_ = !why.empty();
  }
}

}  // namespace comera::studio
