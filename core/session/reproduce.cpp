#include "core/session/reproduce.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/records/events.h"
#include "core/session/recorder.h"
#include "core/session/version.h"
#include "core/session/with_others.h"
#include "core/store/run_reader.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"
#include "core/train/device_links.h"
#include "core/train/trainer.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

bool same_value(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b) || a == b; }

// Compares what the trainer reports with what is stored.
class Comparer : public TrainObserver {
 public:
  Comparer(const RunReader& reader, const std::string& run, Reproduction& result) : result_(result) {
    for (const std::string& name : reader.metric_names(run)) stored_[name] = reader.metric(run, name);
  }
  void on_step(const StepRecord& record) override { compare(record.step, step_metrics(record)); }
  void on_eval(const EvalRecord& record) override { compare(record.step, eval_metrics(record)); }

 private:
  void compare(int64_t step, const NamedValues& values) {
    for (const auto& [name, value] : values) {
      const auto series = stored_.find(name);
      if (series == stored_.end()) continue;
      const std::vector<int64_t>& steps = series->second.steps;
      const auto found = std::lower_bound(steps.begin(), steps.end(), step);
      if (found == steps.end() || *found != step) continue;
      const double stored = series->second.values[static_cast<size_t>(found - steps.begin())];
      ++result_.values;
      if (!result_.identical || same_value(stored, value)) continue;
      result_.identical = false;
      result_.step = step;
      result_.what = name;
      result_.stored = stored;
      result_.computed = value;
    }
  }
  std::map<std::string, Series> stored_;
  Reproduction& result_;
};

}  // namespace

std::string first_file_difference(const std::string& a, const std::string& b) {
  const SafetensorsFile first(a), second(b);
  for (const auto& [name, entry] : first.entries()) {
    if (!second.has(name)) return name;
    const SafetensorsEntry& other = second.entry(name);
    if (entry.dtype != other.dtype || entry.shape != other.shape ||
        std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin)) != 0)
      return name;
  }
  for (const auto& [name, entry] : second.entries())
    if (!first.has(name)) return name;
  return "";
}

namespace {

// A temporary file beside a checkpoint, whose disk has room for another one; in the system's temporary folder if that of the checkpoint is
// read-only. Removed at the end.
class FileBeside {
 public:
  explicit FileBeside(const fs::path& file) {
    const fs::path folder = file.parent_path();
    const bool writable = ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
    path_ = (writable ? folder : fs::temp_directory_path()) / file.filename();
    path_ += ".again-" + std::to_string(::getpid());
  }
  ~FileBeside() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Compares the weights with a stored checkpoint, byte for byte.
void compare_weights(Trainer& trainer, const std::string& stored, Reproduction& result) {
  const FileBeside again(stored);
  trainer.save(again.path());
  const std::string difference = first_file_difference(stored, again.path());
  result.weights_compared = true;
  if (difference.empty()) return;
  result.identical = false;
  result.step = trainer.state().step;
  result.what = difference;
}

}  // namespace

ComputedWith computed_with(const RunReader& reader, const std::string& run, int64_t step) {
  ComputedWith with;
  const auto take = [&](const auto& event) { with = {event.program, event.device, event.blas}; };
  for (const EventRow& event : reader.events(run)) {
    if (event.step >= step) break;
    if (event.kind == StartEvent::kind) take(read_event<StartEvent>(event.body));
    if (event.kind == ResumeEvent::kind) take(read_event<ResumeEvent>(event.body));
  }
  return with;
}

Reproduction reproduce_run(const std::string& store, const std::string& id_or_name, const std::function<bool(int64_t, int64_t)>& progress,
                           ReproducedSteps steps) {
  const StoredRun source = load_stored_run(store, id_or_name);
  if (source.status == "running" && steps.last < 0)
    throw Error(ErrorCode::usage, "run " + source.id + " is still running", "", "wait until it has ended");
  const int64_t last = steps.last < 0 ? source.step : std::min(steps.last, source.step);
  Reproduction result;
  result.run = source.id;
  const RunReader reader(store);
  Comparer comparer(reader, source.id, result);
  const TrainConfig& train = source.config.train;
  const std::unique_ptr<OthersInThreads> threads = others_in_threads(source.config);
  Communicator* const others = threads ? &threads->others() : nullptr;
  const int cores = static_cast<int>(train.threads);
  const std::unique_ptr<Device> device = others ? open_share_of_device(train.device, cores, *others) : open_device(train.device, cores);
  const RunData data = open_run_data(source.config, source);
  // A fork begins with the weights of its parent, an import with those of a file: they are in its first checkpoint.
  auto start = source.checkpoints.upper_bound(std::max(steps.after, source.fork_step));
  const bool from_checkpoint = start != source.checkpoints.begin() && (source.begins_with_checkpoint() || steps.after > 0);
  if (from_checkpoint) --start;
  if (source.begins_with_checkpoint() && (!from_checkpoint || start->first < source.fork_step)) throw source.lacks_first_checkpoint();
  const std::string checkpoint = from_checkpoint ? start->second : "";
  const RunConfig config = from_checkpoint ? checkpoint_config(checkpoint) : source.config;
  if (others) {
    tell_of_trainer(*others, config, train.device, checkpoint);
    link_devices(*device, *others);
  }
  Trainer trainer(config, data.train, data.validation, *device, comparer, others, checkpoint);
  if (others) tell_calls_of(trainer, *others);
  if (from_checkpoint)
    trainer.restore(checkpoint);
  else
    trainer.start();
  result.from = trainer.state().step;
  std::vector<ScheduledChange> changes = source.changes;
  std::erase_if(changes, [&](const ScheduledChange& change) { return change.step <= result.from; });
  result.now = {version_stored(), device->name(), device->blas()};
  try {
    while (trainer.state().step < last && result.identical) {
      apply_changes(trainer, changes);
      trainer.step();
      ++result.steps;
      if (progress && !progress(trainer.state().step, last)) break;
    }
    trainer.drain();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::diverged) throw;  // as the stored run did, if it did: its values end here
  }
  const auto end = source.checkpoints.find(trainer.state().step);
  // Whether a change that is in force from the next step on came before a checkpoint of this one or after it is not stored;
  // at the end of a run it came before.
  const bool clear = last == source.step || changes.empty() || changes.front().step > last + 1;
  if (result.identical && end != source.checkpoints.end() && trainer.state().step == last && clear && trainer.averaged()) {
    apply_changes(trainer, changes);
    compare_weights(trainer, end->second, result);
  }
  result.then = computed_with(reader, source.id, result.identical ? trainer.state().step : result.step);
  return result;
}

}  // namespace comera
