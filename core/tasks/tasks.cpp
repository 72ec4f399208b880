#include "core/base/error.h"
#include "core/tasks/task.h"

namespace comera {

std::unique_ptr<Task> make_classification(const ModelConfig& config);
std::unique_ptr<Task> make_binary(const ModelConfig& config);
std::unique_ptr<Task> make_language(const ModelConfig& config);
std::unique_ptr<Task> make_masked(const ModelConfig& config);

namespace {

struct Row {
  const char* id;  // its choice of model.task: core/config/model.cpp
  std::unique_ptr<Task> (*make)(const ModelConfig&);
};
constexpr Row kTasks[] = {
    {"classification", make_classification},
    {"binary", make_binary},
    {"language", make_language},
    {"masked", make_masked},
};

}  // namespace

std::unique_ptr<Task> make_task(const ModelConfig& config) {
  for (const Row& row : kTasks)
    if (config.task == row.id) return row.make(config);
  throw Error(ErrorCode::config, "no task '" + config.task + "'", "", "comera config show model.task lists them");
}

void MeanScores::add(const StepResults& results, std::span<const double>, const Batch&) {
  loss_sum_ += results.ce * results.examples;
  correct_ += results.correct;
  examples_ += results.examples;
}

Score MeanScores::values() const {
  Score score;
  score.examples = static_cast<int64_t>(examples_);
  if (examples_ > 0) {
    score.loss = loss_sum_ / examples_;
    score.accuracy = correct_ / examples_;
  }
  return score;
}

}  // namespace comera
