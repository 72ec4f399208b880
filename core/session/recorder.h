// Turns what the trainer reports into stored rows and into what a snapshot shows. Trainer's thread.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thinned.h"
#include "core/session/snapshot.h"
#include "core/session/stored_run.h"
#include "core/store/run_writer.h"
#include "core/train/trainer.h"

namespace comera {

// What is stored of every step but its time, and of every score: these repeat bit for bit when a run is computed again.
NamedValues step_metrics(const StepRecord& record);
NamedValues eval_metrics(const EvalRecord& record);
std::vector<std::string> more_scores();  // all that Score::more may have: "auc"

class Recorder : public TrainObserver {
 public:
  void watch(Trainer* trainer) { trainer_ = trainer; }
  void mute(bool muted) { muted_ = muted; }  // while steps are computed again that are stored already
  // Null: nothing is stored.
  void use(std::unique_ptr<RunWriter> writer) { writer_ = std::move(writer); }
  RunWriter* writer() { return writer_.get(); }
  // These changes are in the store already: they are made again after a resume.
  void expect_again(std::vector<ScheduledChange> changes) { stored_already_ = std::move(changes); }

  void on_step(const StepRecord& record) override;
  void on_eval(const EvalRecord& record) override;
  void on_ranks(int64_t step, const std::vector<RankChange>& changes) override;
  void on_memory(int64_t step, const MemoryByPurpose& now) override;
  void on_event(int64_t step, const char* kind, const Json& body) override;
  template <class Event>
  void tell(int64_t step, const Event& event) {
    on_event(step, Event::kind, json_of(event));
  }
  // What was measured beside the step itself (run_sampler.h); none = nothing.
  void on_sample(int64_t step, const NamedValues& values);

  Records take_records();
  // Of the session's steps: of all of them up to kStepTimes, then of that many spread evenly over them.
  double step_ms_quantile(double quantile) const;
  static constexpr size_t kStepTimes = 4096;
  size_t step_times_kept() const { return step_ms_.values().size() + last_ms_.size(); }
  double recent_step_ms() const;              // mean of the last 20 steps
  double mean_tokens() const;                 // a step
  int64_t events() const { return events_; }  // told so far, but for measurements that were asked for

 private:
  void record_metrics(int64_t step, const NamedValues& values);

  std::unique_ptr<RunWriter> writer_;
  Trainer* trainer_ = nullptr;
  bool muted_ = false;
  std::vector<ScheduledChange> stored_already_;
  Records records_;
  Thinned<float> step_ms_{kStepTimes};
  std::deque<float> last_ms_;  // of the last kRecentSteps
  double tokens_sum_ = 0;
  int64_t events_ = 0;
};

}  // namespace comera
