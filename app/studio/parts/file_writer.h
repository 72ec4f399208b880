// Writes files in the order of the requests, on a separate thread. Called from one thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace comera::studio {

class FileWriter {
 public:
  struct File {
    std::string name, extension;            // "loss", "csv"; an existing file is kept: "loss-2.csv"
    std::function<std::string()> contents;  // called on the writing thread; may throw Error
  };
  struct Batch {
    std::string folder;
    std::vector<File> files;
  };
  struct Result {
    std::vector<std::string> written;  // paths
    std::string problem;               // what failed, why, and advice; "" = all were written, or the rest was given up
    bool given_up = false;
  };
  struct Unfinished {
    size_t files = 0;    // not written yet
    std::string folder;  // of the first batch
  };
  FileWriter();
  ~FileWriter();  // waits until all requested files are written
  FileWriter(const FileWriter&) = delete;

  void write(Batch batch);
  // Drops files that are not written yet; removes a partly written one.
  void give_up();
  Unfinished unfinished() const;
  bool busy() const;  // files are unfinished, or a result was not taken
  std::vector<Result> take_results();

 private:
  void work(const std::stop_token& stop);
  Result write_batch(const Batch& batch);

  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::deque<Batch> batches_;           // guarded by mutex_
  std::vector<Result> results_;         // guarded by mutex_
  bool writing_ = false;                // guarded by mutex_
  Unfinished now_;                      // guarded by mutex_: rest of the current batch
  std::atomic<bool> gives_up_ = false;  // give up the current batch
  std::jthread thread_;                 // last member: the thread uses the others
};

}  // namespace comera::studio
