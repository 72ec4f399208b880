// Log of the window as a file, since a program without a terminal has no other place for it. Written on a separate thread:
// no frame waits for a disk, and a failed write ends nothing.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace comera::studio {

enum class Level;

// Thread: any. Several windows may write the same file.
class LogFile {
 public:
  static constexpr int64_t kMostBytes = 1 << 20;

  // Nothing is made before the first line. Beyond `most_bytes` the file becomes PATH.1, in the place of the one before.
  explicit LogFile(std::string path, int64_t most_bytes = kMostBytes);
  ~LogFile();  // writes what is left
  LogFile(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  // A line with the time of now; one that repeats the line before is left out. `from`: "window", or the name of a run.
  void write(Level level, const std::string& from, const std::string& text);
  // Why lines could not be written since the last call; "" = they could, or that was said already. Once for each time.
  std::string take_problem();

 private:
  void work(const std::stop_token& stop);

  const std::string path_;
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable_any asked_;
  std::string waiting_, last_;  // guarded by mutex_: lines, and the last one without its time
  std::string problem_;         // guarded by mutex_; not said yet
  bool fails_ = false;          // guarded by mutex_
  std::jthread thread_;         // last: it uses the others
};

}  // namespace comera::studio
