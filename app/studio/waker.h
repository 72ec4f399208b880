// Wakes the drawing thread; callable from any thread. After close(), wake() no longer touches the window, so threads may outlive it.
#pragma once
#include <functional>
#include <mutex>
#include <utility>

namespace comera::studio {

class Waker {
 public:
  // `post` ends the wait of the drawing thread; it runs on the thread that calls wake().
  void open(std::function<void()> post) {
    const std::lock_guard lock(mutex_);
    post_ = std::move(post);
  }
  // Returns when no call of `post` is running.
  void close() {
    const std::lock_guard lock(mutex_);
    post_ = nullptr;
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    if (post_) post_();
  }
  // Whether wake() was called since the last take().
  bool take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(woken_, false);
  }

 private:
  std::mutex mutex_;
  bool woken_ = false;          // guarded by mutex_
  std::function<void()> post_;  // guarded by mutex_; null: no open window
};

}  // namespace comera::studio
