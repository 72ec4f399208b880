// The window's log file: a program without a terminal has no other place for messages. A separate thread writes it, so no frame waits for a
// disk, and a failed write has no other effect.
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

  // The file is created by the first line. Before it exceeds `most_bytes` it is renamed to PATH.1, which replaces an older PATH.1.
  explicit LogFile(std::string path, int64_t most_bytes = kMostBytes);
  ~LogFile();  // writes the remaining lines
  LogFile(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  // Appends a line with the current time; a line equal to the previous one is dropped. `from`: "window", or the name of a run.
  void write(Level level, const std::string& from, const std::string& text);
  // Why writing failed, reported once per failure; "" = no new failure.
  std::string take_problem();

 private:
  void work(const std::stop_token& stop);

  const std::string path_;
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable_any asked_;
  std::string waiting_, last_;  // guarded by mutex_: lines to write; the last line without its time
  std::string problem_;         // guarded by mutex_; not reported yet
  bool fails_ = false;          // guarded by mutex_
  std::jthread thread_;         // last member: the thread uses the others
};

}  // namespace comera::studio
