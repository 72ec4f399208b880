#include "core/session/recorder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/config/metrics.h"
#include "core/records/events.h"
#include "core/store/process.h"

namespace comera {
namespace {
constexpr size_t kRecentSteps = 20;
}

NamedValues step_metrics(const StepRecord& r) {
  NamedValues values{{"train_loss", r.results.ce},
                     {"train_objective", r.results.loss},
                     {"train_accuracy", r.accuracy},
                     {"rho", r.results.rho},
                     {"lambda", r.results.lambda},
                     {"entries", r.results.entries},
                     {"target_entries", r.target_entries},
                     {"lr_core", r.learning_rate[0]},
                     {"lr_rank", r.learning_rate[1]},
                     {"lr_rest", r.learning_rate[2]},
                     {"tokens", static_cast<double>(r.tokens)},
                     {"epoch", r.epoch}};
  if (r.results.grad_norm2 > 0) values.emplace_back("grad_norm", std::sqrt(r.results.grad_norm2));
  return values;
}

NamedValues eval_metrics(const EvalRecord& record) {
  NamedValues values{{"val_loss", record.loss}, {"val_accuracy", record.accuracy}, {"val_examples", static_cast<double>(record.examples)}};
  for (const auto& [name, value] : record.more) values.emplace_back("val_" + name, value);
  return values;
}

std::vector<std::string> more_scores() {
  static const std::set<std::string> kOfEvery = {"val_loss", "val_accuracy", "val_examples"};
  std::vector<std::string> names;
  for (const MetricInfo& metric : all_metrics())
    if (metric.recorded == Recorded::evaluation && !metric.measured && !kOfEvery.contains(metric.name))
      names.emplace_back(std::string(metric.name).substr(4));
  return names;
}

void Recorder::on_step(const StepRecord& record) {
  if (muted_) return;
  NamedValues values = step_metrics(record);
  values.emplace_back("step_ms", record.step_ms);
  step_ms_.push_back(static_cast<float>(record.step_ms));
  last_ms_.push_back(static_cast<float>(record.step_ms));
  if (last_ms_.size() > kRecentSteps) last_ms_.pop_front();
  tokens_sum_ += static_cast<double>(record.tokens);
  record_metrics(record.step, values);
}

void Recorder::on_eval(const EvalRecord& record) {
  if (muted_) return;
  NamedValues values = eval_metrics(record);
  values.emplace_back("eval_ms", record.ms);
  record_metrics(record.step, values);
}

void Recorder::on_sample(int64_t step, const NamedValues& values) {
  if (!muted_ && !values.empty()) record_metrics(step, values);
}

void Recorder::record_metrics(int64_t step, const NamedValues& values) {
  if (writer_) writer_->metrics(step, values);
  records_.add(step, values, now_s());
}

void Recorder::on_ranks(int64_t step, const std::vector<RankChange>& changes) {
  if (muted_ || !trainer_) return;
  for (const RankChange& change : changes) {
    const std::string& layer = trainer_->engine().params().rank_layers()[static_cast<size_t>(change.layer)].name;
    if (writer_) writer_->rank(step, layer, change.bond + 1, change.to);
    records_.ranks.push_back({step, layer, change.bond + 1, change.to});
  }
}

void Recorder::on_memory(int64_t step, const MemoryByPurpose& now) {
  if (muted_) return;
  for (int i = 0; i < kPurposes; ++i) {
    const MemoryRow row{step, name_of(static_cast<Purpose>(i)), now.bytes[static_cast<size_t>(i)]};
    if (writer_) writer_->memory(row.step, row.purpose, row.bytes);
    records_.memory.push_back(row);
  }
}

void Recorder::on_event(int64_t step, const char* kind, const Json& body) {
  if (muted_) return;
  const std::string name = kind;
  const auto again = std::find_if(stored_already_.begin(), stored_already_.end(), [&](const ScheduledChange& change) {
    if (change.step != step) return false;
    return change_of(step, name, body.dump()) == change;
  });
  if (again != stored_already_.end()) {
    stored_already_.erase(again);
    return;
  }
  if (name != "profile") ++events_;
  if (writer_) writer_->event(step, name, body.dump());
  records_.events.push_back({0, step, name, now_s(), body.dump()});
}

Records Recorder::take_records() { return std::exchange(records_, {}); }

double Recorder::step_ms_quantile(double quantile) const {
  std::vector<float> sorted = step_ms_.values();
  if (sorted.empty()) return 0;
  const size_t at = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1) + 0.5);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(at), sorted.end());
  return sorted[at];
}

double Recorder::recent_step_ms() const {
  double sum = 0;
  for (const float ms : last_ms_) sum += ms;
  return last_ms_.empty() ? 0 : sum / static_cast<double>(last_ms_.size());
}

double Recorder::mean_tokens() const { return step_ms_.count() == 0 ? 0 : tokens_sum_ / static_cast<double>(step_ms_.count()); }

}  // namespace comera
