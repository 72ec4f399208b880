#include "core/session/reproduce.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/session/recorder.h"
#include "core/store/run_reader.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"

namespace comera {
namespace {

bool same_value(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b) || a == b; }

// Compares what the trainer reports with what is stored.
class Comparer : public TrainObserver {
 public:
  Comparer(const RunReader& reader, const std::string& run, Reproduction& result) : result_(result) {
    for (const std::string& name : reader.metric_names(run)) {
      const Series series = reader.metric(run, name);
      for (size_t i = 0; i < series.steps.size(); ++i) stored_[name][series.steps[i]] = series.values[i];
    }
  }
  void on_step(const StepRecord& record) override { compare(record.step, step_metrics(record)); }
  void on_eval(const EvalRecord& record) override { compare(record.step, eval_metrics(record)); }

 private:
  void compare(int64_t step, const NamedValues& values) {
    for (const auto& [name, value] : values) {
      const auto series = stored_.find(name);
      if (series == stored_.end()) continue;
      const auto found = series->second.find(step);
      if (found == series->second.end()) continue;
      ++result_.values;
      if (!result_.identical || same_value(found->second, value)) continue;
      result_.identical = false;
      result_.step = step;
      result_.what = name;
      result_.stored = found->second;
      result_.computed = value;
    }
  }
  std::map<std::string, std::map<int64_t, double>> stored_;
  Reproduction& result_;
};

}  // namespace

std::string first_file_difference(const std::string& a, const std::string& b) {
  const SafetensorsFile first(a), second(b);
  for (const auto& [name, entry] : first.entries()) {
    if (!second.has(name)) return name;
    const SafetensorsEntry& other = second.entry(name);
    if (entry.dtype != other.dtype || entry.shape != other.shape || std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin)) != 0)
      return name;
  }
  for (const auto& [name, entry] : second.entries())
    if (!first.has(name)) return name;
  return "";
}

Reproduction reproduce_run(const std::string& store, const std::string& id_or_name, const std::function<bool(int64_t, int64_t)>& progress) {
  const StoredRun source = load_stored_run(store, id_or_name);
  if (source.status == "running") throw Error(ErrorCode::usage, "run " + source.id + " is still running", "", "wait until it has ended");
  Reproduction result;
  result.run = source.id;
  const RunReader reader(store);
  Comparer comparer(reader, source.id, result);
  const std::unique_ptr<Device> device = open_device(source.config.train.device, static_cast<int>(source.config.train.threads));
  const RunData data = open_run_data(source.config, source);
  Trainer trainer(source.config, data.train, data.validation, *device, comparer);
  if (source.is_fork()) {
    const auto start = source.checkpoints.find(source.fork_step);
    if (start == source.checkpoints.end())
      throw Error(ErrorCode::not_found, "run " + source.id + " cannot be computed again", "the checkpoint it was forked from is gone", "reproduce its parent " + source.parent);
    trainer.restore(start->second);
  } else {
    trainer.start();
  }
  std::vector<ScheduledChange> changes = source.changes;
  while (trainer.state().step < source.step && result.identical) {
    apply_changes(trainer, changes);
    try {
      trainer.step();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::diverged) break;  // as the stored run did, if it did: its values end here
      throw;
    }
    ++result.steps;
    if (progress && !progress(trainer.state().step, source.step)) break;
  }
  const auto last = source.checkpoints.find(trainer.state().step);
  if (result.identical && last != source.checkpoints.end() && trainer.state().step == source.step) {
    apply_changes(trainer, changes);
    const std::string again = last->second + ".again-" + std::to_string(::getpid());
    trainer.save(again);
    const std::string difference = first_file_difference(last->second, again);
    std::error_code ignored;
    std::filesystem::remove(again, ignored);
    result.weights_compared = true;
    if (!difference.empty()) {
      result.identical = false;
      result.step = source.step;
      result.what = difference;
    }
  }
  return result;
}

}  // namespace comera
