// Evaluates a checkpoint of a stored run, or writes its predictions, on a background thread (dialogs/evaluate.cpp).
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/studio/background.h"
#include "core/session/evaluation.h"

namespace comera::studio {

struct UiState;

struct EvaluateQuestion {
  std::string store, run, name;  // name: for display
  int64_t step = -1;             // of the checkpoint; -1 = the last
  EvaluationOf of = {};
  std::string folder = {};  // predictions are written there; "" = scores
};

class Evaluating {
 public:
  struct Answer {
    EvaluateQuestion question;
    std::string data;  // name of the data
    Score score;
    int64_t left_out = 0;  // rows without a text or a label
    bool per_token = false;
    double seconds = 0;
    std::string written;  // file of the predictions
    int64_t rows = 0;     // of that file
    bool given_up = false;
    std::string problem, why, hint;  // why it failed; "" = success
  };
  // `wake` is called on the background thread when the answer is ready.
  Evaluating(EvaluateQuestion question, std::function<void()> wake);
  ~Evaluating();  // waits for the current batch
  Evaluating(const Evaluating&) = delete;

  const EvaluateQuestion& question() const { return question_; }
  void give_up() { given_up_ = true; }  // takes effect after the current batch
  bool gives_up() const { return given_up_; }
  double share() const { return share_; }  // of the rows, 0 to 1; negative: the data are still being read
  std::optional<Answer> answer() const;    // nullopt until it is ready

 private:
  void work();
  void evaluate(Answer& answer);
  const EvaluateQuestion question_;
  const std::function<void()> wake_;
  std::atomic<double> share_ = -1;
  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;
  std::optional<Answer> answer_;  // guarded by mutex_
  std::jthread thread_;           // last member: the thread uses the others
};

// Scores by their titles, as the metrics of the same names are shown: "Accuracy", "87.5 %".
std::vector<std::pair<std::string, std::string>> score_texts(const Evaluating::Answer& answer);

// What can be chosen for a run, and why nothing can.
struct EvaluateChoices {
  EvaluationChoices of;
  std::string problem;
};

// State of the dialog.
struct EvaluateView {
  std::string store, run, name;
  int64_t step = -1;               // chosen checkpoint; -1 = the last
  std::string split;               // chosen split of the run's own data, where `file` is ""
  std::string file;                // other data: chosen file or folder
  std::vector<std::string> files;  // all that were chosen so far
  std::unique_ptr<Background<std::pair<std::string, std::string>, EvaluateChoices>> looker;  // of (store, run)
  uint64_t look_number = 0;
  std::unique_ptr<Evaluating> work;
  std::optional<Evaluating::Answer> answer;                // the last one
  std::shared_ptr<const EvaluateChoices> choices() const;  // null until they are read
};

// Opens the dialog for a stored run.
void open_evaluate(UiState& ui, const std::string& store, const std::string& run, const std::string& name);
// The same for the shown run, and why this is not possible; null = possible.
void evaluate_shown(UiState& ui);
const char* no_evaluation(const UiState& ui);
// A file was chosen for the dialog, which opens again; "" = none was.
void evaluate_on(UiState& ui, const std::string& file);
// Begins with the choices of the dialog. `predictions`: writes these instead.
void begin_evaluation(UiState& ui, bool predictions);
// Takes the answer; gives up when the dialog was closed. Called once a frame.
void tick_evaluating(UiState& ui);

}  // namespace comera::studio
