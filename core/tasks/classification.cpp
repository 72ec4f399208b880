// One of several classes an example: softmax and cross-entropy.
#include <algorithm>

#include "core/tasks/task.h"

namespace comera {
namespace {

class Classification final : public Task {
 public:
  explicit Classification(int64_t classes) : classes_(classes) {}
  void targets(BatchLayout& layout) const override {
    layout.add({.name = "labels",
                .low = -1,
                .high = classes_,
                .title = "label",
                .setting = "model.classes",
                .why = "a label would be out of range",
                .hint = "the data set does not fit the model's number of classes"});
  }
  void loss(Ctx& ctx, const Tensor& out, const DeviceBatch& batch, const Tensor& dout) const override {
    ctx.ops.cross_entropy(ctx.results, dout, {}, out, batch.at("labels"));
  }
  int64_t predicted(std::span<const double> outputs) const override {
    return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  }

 private:
  const int64_t classes_;
};

}  // namespace

std::unique_ptr<Task> ClassificationTask::make(const ModelConfig& config) { return std::make_unique<Classification>(config.classes); }

}  // namespace comera
