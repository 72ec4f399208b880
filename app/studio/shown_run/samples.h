// Texts that the shown run's language model writes from its checkpoints, on a background thread.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/background.h"

namespace comera::studio {

struct RunView;
struct UiState;

struct SampleQuestion {
  std::string path;  // of the checkpoint file
  int64_t step = 0;  // of the checkpoint
  std::string prompt;
  double temperature = 1;
  int64_t tokens = 0;
  uint64_t seed = 0;                                  // of the draws
  std::shared_ptr<const std::atomic<bool>> given_up;  // ends it early
  bool same_text(const SampleQuestion& other) const {
    return path == other.path && prompt == other.prompt && temperature == other.temperature && tokens == other.tokens;
  }
};

struct Sample {
  SampleQuestion question;
  std::string text;     // valid UTF-8
  std::string problem;  // why there is none; "" = success
};

// Loads the model to the CPU with one thread beside the run.
// Refuses a model that would take more than half of the free memory. Never throws.
Sample write_sample(const SampleQuestion& question);

// State of the panel.
struct SamplesView {
  std::string prompt = "\n";
  std::string typed;  // the prompt while it is edited; it counts when that has ended
  bool editing = false;
  double temperature = 0.8;
  int64_t tokens = 120;
  std::vector<Sample> written;    // newest last
  const RunView* view = nullptr;  // the run that they belong to
  SampleQuestion asked;
  uint64_t number = 0;  // of the question
  std::shared_ptr<std::atomic<bool>> given_up = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Background<SampleQuestion, Sample>> writer;  // null: nothing was asked yet
  SamplesView() = default;
  ~SamplesView() { *given_up = true; }
};

// Asks for the text of the last checkpoint up to the shown step unless it is there, and takes what was written. All checkpoints have the
// same seed, so that texts of one prompt differ by the model alone. `again`: another text, with the next seed.
void tick_samples(UiState& ui, bool again);
bool writes_text(const UiState& ui);  // the shown run's model is a language model

}  // namespace comera::studio
