// Turns what the trainer reports into stored rows and into what a snapshot shows. Trainer's thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/session/snapshot.h"
#include "core/store/run_writer.h"

namespace comera {

// The metrics that must repeat bit for bit when a run is computed again (times are left out).
std::vector<std::pair<const char*, double>> step_metrics(const StepRecord& record, const ModelSize& size);
std::vector<std::pair<const char*, double>> eval_metrics(const EvalRecord& record);

class Recorder : public TrainObserver {
 public:
  // `writer` may be null: nothing is stored.
  explicit Recorder(std::unique_ptr<RunWriter> writer) : writer_(std::move(writer)) {}

  void watch(Trainer* trainer) { trainer_ = trainer; }
  void mute(bool muted) { muted_ = muted; }         // while the steps before a fork are computed again
  void replace_writer(std::unique_ptr<RunWriter> writer) { writer_ = std::move(writer); }
  RunWriter* writer() { return writer_.get(); }

  void on_step(const StepRecord& record) override;
  void on_eval(const EvalRecord& record) override;
  void on_ranks(int64_t step, const std::vector<RankChange>& changes) override;
  void on_memory(int64_t step, const MemoryByPurpose& now) override;
  void on_event(int64_t step, const char* kind, const Json& body) override;

  std::vector<MetricRow> take_rows();
  // Median and 95th percentile of the steps since the session began; ms.
  double step_ms_quantile(double quantile) const;
  double recent_step_ms() const;  // mean of the last steps
  double recent_tokens() const;   // tokens a step

 private:
  std::unique_ptr<RunWriter> writer_;
  Trainer* trainer_ = nullptr;
  bool muted_ = false;
  std::vector<MetricRow> rows_;
  std::vector<float> step_ms_;
  double tokens_sum_ = 0;
  int64_t tokens_steps_ = 0;
};

}  // namespace comera
