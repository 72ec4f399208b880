#include "core/data/prefetch.h"

namespace comera {

Prefetcher::Prefetcher(const Dataset& data, const BatchOptions& options, int64_t cursor) : data_(data), options_(options) {
  back_.next_cursor = cursor;  // as if the batch before it had just been made
  thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::run() {
  int64_t cursor = back_.next_cursor;
  for (int64_t made = 0;; ++made) {
    std::exception_ptr error;
    try {
      make_batch(data_, options_, cursor, back_, made % options_.parts);
      cursor = back_.next_cursor;
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    error_ = error;
    ready_ = true;
    changed_.notify_all();
    if (error) return;
    changed_.wait(lock, [this] { return !ready_ || stop_; });
    if (stop_) return;
  }
}

const Batch& Prefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
  if (error_) std::rethrow_exception(error_);
  std::swap(front_, back_);
  ready_ = false;
  changed_.notify_all();
  return front_;
}

}  // namespace comera
