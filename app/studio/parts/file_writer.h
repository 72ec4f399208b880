// Writes files in the order they come, on a thread of its own. One thread gives and takes.
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
    std::string name, extension;            // "loss", "csv"; never over one that is there: "loss-2.csv"
    std::function<std::string()> contents;  // called on the writing thread; may throw Error
  };
  struct Batch {
    std::string folder;
    std::vector<File> files;
  };
  struct Result {
    std::vector<std::string> written;  // paths
    std::string problem;               // what, why and what to try; "" = all is written, or it was given up
    bool given_up = false;
  };
  struct Unfinished {
    size_t files = 0;    // that are not written yet
    std::string folder;  // of the first one
  };
  FileWriter();
  ~FileWriter();  // after everything that was asked for is written
  FileWriter(const FileWriter&) = delete;

  void write(Batch batch);
  // Files that are not written yet are not wanted any more; one that is begun is removed.
  void give_up();
  Unfinished unfinished() const;
  bool busy() const;  // something is unfinished, or a result was not taken
  std::vector<Result> take_results();

 private:
  void work(const std::stop_token& stop);
  Result write_batch(const Batch& batch);

  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::deque<Batch> batches_;           // guarded by mutex_
  std::vector<Result> results_;         // guarded by mutex_
  bool writing_ = false;                // guarded by mutex_
  Unfinished now_;                      // guarded by mutex_: of the batch that is being written
  std::atomic<bool> gives_up_ = false;  // the batch that is being written
  std::jthread thread_;                 // last: it uses the others
};

}  // namespace comera::studio
