// Local steps: each process makes steps with its own part of the batch, and all go on with the mean of their weights from time to time
// (train.sync_every, METHODS.md 24).
#include <cstring>

#include "core/base/clock.h"
#include "core/train/engine.h"

namespace comera {

// A local step: each process computes its own part. The exchange ends all where one failed, and times who waits.
void Engine::take_own_part(const std::function<const Batch&()>& next, const StepScalars& scalars, bool op_by_op) {
  const double begin = now_ms() - waited_ms_;
  begin_part(next, scalars, others_->process(), true);
  run_part(op_by_op);
  device_.synchronize();
  const double mine[] = {static_cast<double>(tokens_), now_ms() - waited_ms_ - begin}, computed = now_ms();
  tokens_ = 0;
  shared_step_.compute_ms.clear();
  shared_step_.sent_bytes = 0;
  for (const std::string& text : others_->exchange(std::string(reinterpret_cast<const char*>(mine), sizeof mine))) {
    double theirs[2];
    std::memcpy(theirs, text.data(), sizeof theirs);
    tokens_ += static_cast<int64_t>(theirs[0]);
    shared_step_.compute_ms.push_back(theirs[1]);
  }
  others_ms_ += now_ms() - computed;
}

// Makes the results and mail by which all decide: losses are means over the examples of all processes, all other values come from process
// 0.
void Engine::combine_results(int64_t slot) {
  std::string mine(sizeof(StepResults) + static_cast<size_t>(mail_bytes()), '\0');
  device_.synchronize();
  device_.download(mine.data(), results_.raw(), sizeof(StepResults));
  if (mail_bytes() > 0) device_.download(mine.data() + sizeof(StepResults), method_->mail().raw(), mail_bytes());
  const std::vector<std::string> all = others_->exchange(mine);
  StepResults sum;
  std::memcpy(&sum, all[0].data(), sizeof sum);
  sum.loss = sum.ce = sum.examples = sum.correct = 0;
  for (const std::string& text : all) {
    StepResults one;
    std::memcpy(&one, text.data(), sizeof one);
    sum.loss += one.loss * one.examples;
    sum.ce += one.ce * one.examples;
    sum.examples += one.examples;
    sum.correct += one.correct;
  }
  if (sum.examples > 0) sum.loss /= sum.examples, sum.ce /= sum.examples;
  std::vector<char>& out = combined_[slot];
  out.assign(all[0].begin(), all[0].end());
  std::memcpy(out.data(), &sum, sizeof sum);
}

// Visits every tensor of an average, in the same order on all processes.
void Engine::each_averaged(const std::function<void(const Tensor&, Together)>& visit) const {
  for (const Param& param : params_.params()) {
    if (!param.trainable) continue;
    visit(param.value, Together::mean);
    optimizer_->each_state(param, [&](const Tensor& state) {
      const bool of_weights = state.dtype() == config_.dtype() && state.shape() == param.shape && param.way != GradWay::projected;
      visit(state, of_weights ? Together::mean : Together::of_first);
    });
  }
  if (params_.all_states().count() > 0) visit(params_.all_states(), Together::mean);
}

void Engine::average() {
  const double begin = now_ms();
  const int64_t sent = others_->sent_bytes();
  device_.synchronize();
  try {
    each_averaged([&](const Tensor& values, Together how) {
      how == Together::mean ? shared_->average(device_, values) : shared_->spread(device_, values);
    });
  } catch (const std::exception& error) {  // others may wait for messages that do not come
    others_->abort(error.what());
  }
  optimizer_->reread();
  shared_step_.sent_bytes += others_->sent_bytes() - sent;
  times_.others += now_ms() - begin;
}

int64_t Engine::bytes_to_average() const {
  int64_t sum = 0;
  each_averaged([&](const Tensor& values, Together how) {
    sum += how == Together::mean ? shared_->bytes_to_average(values) : shared_->bytes_to_spread(values);
  });
  return sum;
}

}  // namespace comera
