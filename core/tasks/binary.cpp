// One of two classes from one logit: sigmoid and cross-entropy. Scored by AUC as well: the share of pairs of a row of class 1 and a row of
// class 0 of which the first has the larger logit, where equal logits count half.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/tasks/task.h"

namespace comera {
namespace {

class BinaryScores final : public MeanScores {
 public:
  void add(const StepResults& results, std::span<const double> outputs, const Batch& batch) override {
    MeanScores::add(results, outputs, batch);
    const std::vector<int32_t>& labels = batch.ints.at("labels");
    for (size_t s = 0; s < labels.size(); ++s)
      if (labels[s] >= 0) logits_[labels[s]].push_back(outputs[s]);
  }
  Score values() const override {
    Score score = MeanScores::values();
    if (const std::optional<double> auc = area()) score.more.emplace_back("auc", *auc);
    return score;
  }

 private:
  // None where a class is missing or a logit is not a number.
  std::optional<double> area() const {
    std::vector<double> zeros = logits_[0], ones = logits_[1];
    for (std::vector<double>* values : {&zeros, &ones}) {
      if (values->empty() || std::any_of(values->begin(), values->end(), [](double z) { return std::isnan(z); })) return {};
      std::sort(values->begin(), values->end());
    }
    int64_t twice = 0;  // pairs in the right order, and half of the ties
    size_t below = 0, not_above = 0;
    for (const double z : ones) {
      while (below < zeros.size() && zeros[below] < z) ++below;
      while (not_above < zeros.size() && zeros[not_above] <= z) ++not_above;
      twice += static_cast<int64_t>(below + not_above);
    }
    return static_cast<double>(twice) / (2 * static_cast<double>(zeros.size()) * static_cast<double>(ones.size()));
  }

  std::vector<double> logits_[2];  // by class
};

class Binary final : public Task {
 public:
  void targets(BatchLayout& layout) const override {
    layout.add({.name = "labels",
                .low = -1,
                .high = 2,
                .title = "label",
                .setting = "model.classes",
                .why = "model.task binary has two classes",
                .hint = "the task has two classes: 0 and 1"});
  }
  void loss(Ctx& ctx, const Tensor& out, const DeviceBatch& batch, const Tensor& dout) const override {
    ctx.ops.binary_cross_entropy(ctx.results, dout, {}, out, batch.at("labels"));
  }
  std::unique_ptr<Scores> scores() const override { return std::make_unique<BinaryScores>(); }
  bool wants_outputs() const override { return true; }
  int64_t predicted(std::span<const double> outputs) const override { return outputs[0] > 0; }
};

}  // namespace

std::unique_ptr<Task> BinaryTask::make(const ModelConfig&) { return std::make_unique<Binary>(); }

}  // namespace comera
