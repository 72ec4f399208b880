// Wakes the thread that draws, from any thread. After close() nothing of the window is touched, whoever still calls wake():
// a thread that ends later than the window needs no place in a list.
#pragma once
#include <functional>
#include <mutex>
#include <utility>

namespace comera::studio {

class Waker {
 public:
  // `post` ends the wait of the thread that draws; it runs on the waking thread.
  void open(std::function<void()> post) {
    const std::lock_guard lock(mutex_);
    post_ = std::move(post);
  }
  // Returns when no `post` runs any more.
  void close() {
    const std::lock_guard lock(mutex_);
    post_ = nullptr;
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    if (post_) post_();
  }
  // Whether wake() was called since the last call.
  bool take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(woken_, false);
  }

 private:
  std::mutex mutex_;
  bool woken_ = false;          // guarded by mutex_
  std::function<void()> post_;  // guarded by mutex_; null: no window is open
};

}  // namespace comera::studio
