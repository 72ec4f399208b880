#include "core/base/error.h"
#include "core/tasks/task.h"

namespace comera {

std::unique_ptr<Task> make_task(const ModelConfig& config) {
  std::unique_ptr<Task> made;
  each_task([&](auto task) {
    if (config.task == task.info().choice.id) made = task.make(config);
  });
  if (!made) throw Error(ErrorCode::config, "no task '" + config.task + "'", "", "comera config show model.task lists them");
  return made;
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
