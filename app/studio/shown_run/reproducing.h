// Reproduces steps of a stored run on a background thread.
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

// Steps first..last of a stored run; last = -1: all.
struct ReproduceQuestion {
  std::string store, run, name;  // name: for display
  int64_t first = 1, last = -1;
};

class Reproducing {
 public:
  struct Answer {
    Reproduction found;
    bool given_up = false;
    std::string problem;  // why it failed; "" = success
  };
  // `wake` is called on the background thread when the answer is ready.
  Reproducing(ReproduceQuestion question, std::function<void()> wake);
  ~Reproducing();  // waits for the current step
  Reproducing(const Reproducing&) = delete;

  const ReproduceQuestion& question() const { return question_; }
  void give_up() { given_up_ = true; }  // takes effect after the current step
  bool gives_up() const { return given_up_; }
  int64_t at() const { return at_; }     // last computed step; 0 = none yet
  std::optional<Answer> answer() const;  // nullopt until it is ready
  static std::string text_of(const ReproduceQuestion& question, const Answer& answer);

 private:
  void work();
  const ReproduceQuestion question_;
  const std::function<void()> wake_;
  std::atomic<int64_t> at_ = 0;
  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;
  std::optional<Answer> answer_;  // guarded by mutex_
  std::jthread thread_;           // last member: the thread uses the others
};

// Steps of the shown run to reproduce: the selection, or from the last checkpoint to the cursor.
ReproduceQuestion steps_to_reproduce(const UiState& ui);
// Why this is not possible; null = possible.
const char* no_reproducing(const UiState& ui);
void reproduce_shown(UiState& ui);
// Reproduces all steps of the shown run.
void reproduce_whole(UiState& ui);
// Reports the result. Called once a frame.
void tick_reproducing(UiState& ui);

}  // namespace comera::studio
