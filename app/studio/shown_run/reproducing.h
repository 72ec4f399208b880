// Reproduces steps of a stored run on another thread, and its result.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/session/reproduce.h"

namespace comera::studio {

struct UiState;

// The steps first..last of a stored run; last = -1: all.
struct ReproduceQuestion {
  std::string store, run, name;  // name: for people
  int64_t first = 1, last = -1;
};

class Reproducing {
 public:
  struct Answer {
    Reproduction found;
    bool given_up = false;
    std::string problem;  // why it failed; "" = it succeeded
  };
  // `wake` is called on the thread when the answer is there.
  Reproducing(ReproduceQuestion question, std::function<void()> wake);
  ~Reproducing();  // waits for the step that is being computed
  Reproducing(const Reproducing&) = delete;

  const ReproduceQuestion& question() const { return question_; }
  void give_up() { given_up_ = true; }  // after the step that is being computed
  bool gives_up() const { return given_up_; }
  int64_t at() const { return at_; }     // the last step that was computed; 0 = none yet
  std::optional<Answer> answer() const;  // once it is there
  static std::string text_of(const ReproduceQuestion& question, const Answer& answer);

 private:
  void work();
  const ReproduceQuestion question_;
  const std::function<void()> wake_;
  std::atomic<int64_t> at_ = 0;
  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;
  std::optional<Answer> answer_;  // guarded by mutex_
  std::jthread thread_;           // last: it uses the others
};

// Of the shown run: the selection, or the steps from the last checkpoint to the cursor.
ReproduceQuestion steps_to_reproduce(const UiState& ui);
// Why they cannot be reproduced; null when they can.
const char* no_reproducing(const UiState& ui);
void reproduce_shown(UiState& ui);
// The whole of the shown run.
void reproduce_whole(UiState& ui);
// Reports the result. Once per frame.
void tick_reproducing(UiState& ui);

}  // namespace comera::studio
