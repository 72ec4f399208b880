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
  for (int64_t part = 0;;) {
    std::exception_ptr error;
    try {
      make(part, cursor);
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

// The next own part, from `part` of a batch on; behind the last own one the rest of the batch is skipped.
void Prefetcher::make(int64_t& part, int64_t& cursor) {
  const auto skip_until = [&](int64_t end) {
    for (; part < end; ++part) cursor = cursor_behind(data_, options_, cursor, part);
  };
  skip_until(part + (options_.process - part % options_.processes + options_.processes) % options_.processes);
  make_batch(data_, options_, cursor, back_, part++);
  cursor = back_.next_cursor;
  if (part + options_.processes > options_.parts) skip_until(options_.parts);
  back_.next_cursor = cursor;
  part %= options_.parts;
}

void Prefetcher::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
  if (error_) std::rethrow_exception(error_);
}

const Batch& Prefetcher::next() {
  wait();
  const std::lock_guard lock(mutex_);
  std::swap(front_, back_);
  ready_ = false;
  changed_.notify_all();
  return front_;
}

}  // namespace comera
