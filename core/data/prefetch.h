// Makes the next batch on a thread of its own while the trainer works on the current one.
#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/data/dataset.h"

namespace comera {

// Construct, call and destroy on one thread (the trainer's). `data` must outlive it.
class Prefetcher {
 public:
  Prefetcher(const Dataset& data, const BatchOptions& options, int64_t cursor);
  ~Prefetcher();  // waits for the batch in the making at most
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batches in cursor order, part by part, exactly make_batch's; of several processes the own parts, and next_cursor of the last one
  // of a batch is that of the whole batch. Valid until the next call. After the end of a set that
  // is not shuffled: a batch of 0 sequences, again and again. Rethrows an error of the loading thread, again and again.
  const Batch& next();
  // Waits until next() has a batch. Rethrows as next().
  void wait();

 private:
  void run();
  void make(int64_t& part, int64_t& cursor);

  // Constant after construction.
  const Dataset& data_;
  const BatchOptions options_;
  // The caller's.
  Batch front_;
  // The loading thread's while ready_ is false, the caller's while it is true.
  Batch back_;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false, stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it starts when everything above is there
};

}  // namespace comera
