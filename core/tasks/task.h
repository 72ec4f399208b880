// A task gives the outputs of a model their meaning: the fields with the targets, the loss, the scores of an evaluation. What there is of
// each: core/config/tasks.h.
#pragma once
#include <memory>
#include <span>

#include "core/config/model.h"
#include "core/layers/layer.h"
#include "core/tasks/score.h"
#include "core/tensor/batch.h"

namespace comera {

// Gathers over the batches of a data set.
class Scores {
 public:
  virtual ~Scores() = default;
  // `outputs`: rows of the outputs (S, O) where Task::wants_outputs(), else empty.
  virtual void add(const StepResults& results, std::span<const double> outputs, const Batch& batch) = 0;
  virtual Score values() const = 0;
};

// Mean loss and share of correct rows, which every loss op counts.
class MeanScores : public Scores {
 public:
  void add(const StepResults& results, std::span<const double> outputs, const Batch& batch) override;
  Score values() const override;

 private:
  double loss_sum_ = 0, correct_ = 0, examples_ = 0;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual void targets(BatchLayout& layout) const = 0;
  virtual Per rows() const { return Per::example; }  // of the outputs; those of tokens are too many to be looked at one by one
  // Writes results.ce, .examples and .correct, and dout (S, O): the gradient of the mean over the rows of this part that have a label.
  virtual void loss(Ctx& ctx, const Tensor& out, const DeviceBatch& batch, const Tensor& dout) const = 0;
  virtual std::unique_ptr<Scores> scores() const { return std::make_unique<MeanScores>(); }
  virtual bool wants_outputs() const { return false; }  // in an evaluation
  // The class that a row of outputs says.
  virtual int64_t predicted(std::span<const double> outputs) const = 0;
};

// That `config.task` chooses.
std::unique_ptr<Task> make_task(const ModelConfig& config);

}  // namespace comera
