// Answers questions on a separate thread, so that no frame waits for a disk or a computation. Only the newest question counts: it replaces
// any older one that has not been started.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace comera::studio {

template <class Question, class Answer>
class Background {
 public:
  struct Numbered {
    uint64_t number = 0;  // number of the question
    Answer answer;
  };

  // `work` runs on the thread and must not throw; `wake` is called on the thread when an answer is ready.
  Background(std::function<Answer(const Question&)> work, std::function<void()> wake)
      : work_(std::move(work)), wake_(std::move(wake)), thread_([this](const std::stop_token& stop) { run(stop); }) {}
  // Waits until the current question is answered.
  ~Background() {
    thread_.request_stop();
    thread_.join();
  }
  Background(const Background&) = delete;

  uint64_t ask(Question question) {
    const std::lock_guard lock(mutex_);
    wanted_ = std::move(question);
    asked_.notify_all();
    return ++number_;
  }
  // True while a question waits or is being answered; the destructor would then wait.
  bool busy() const {
    const std::lock_guard lock(mutex_);
    return wanted_ || working_;
  }
  // The newest answer, possibly to an older question; null before the first answer.
  std::shared_ptr<const Numbered> latest() const {
    const std::lock_guard lock(mutex_);
    return answer_;
  }

 private:
  void run(const std::stop_token& stop) {
    for (;;) {
      std::optional<Question> question;
      uint64_t number = 0;
      {
        std::unique_lock lock(mutex_);
        if (!asked_.wait(lock, stop, [&] { return wanted_.has_value(); })) return;
        question = std::exchange(wanted_, std::nullopt);
        working_ = true;
        number = number_;
      }
      std::shared_ptr<const Numbered> answer = std::make_shared<const Numbered>(Numbered{number, work_(*question)});
      {
        const std::lock_guard lock(mutex_);
        answer.swap(answer_);
        working_ = false;
      }
      answer.reset();  // frees the previous answer without holding the lock
      if (wake_) wake_();
    }
  }

  const std::function<Answer(const Question&)> work_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::optional<Question> wanted_;          // guarded by mutex_
  bool working_ = false;                    // guarded by mutex_
  uint64_t number_ = 0;                     // guarded by mutex_
  std::shared_ptr<const Numbered> answer_;  // guarded by mutex_
  std::jthread thread_;                     // last member: the thread uses the others
};

}  // namespace comera::studio
