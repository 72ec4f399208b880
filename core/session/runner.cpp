#include "core/session/runner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/data/datasets.h"
#include "core/data/first_rows.h"
#include "core/session/forecast.h"
#include "core/store/run_reader.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr double kPublishSeconds = 1.0 / 60;  // the screen shows no more

}  // namespace

// ---- what a stored run says --------------------------------------------------------------------------------------

std::vector<ScheduledChange> stored_changes(const RunReader& reader, const std::string& run, int64_t after_step) {
  std::vector<ScheduledChange> changes;
  for (const EventRow& event : reader.events(run)) {
    if (event.step <= after_step) continue;
    const Json body = parse_json(event.body, "event");
    if (event.kind == "edit") changes.push_back({event.step, false, body.at("path"), body.at("value")});
    if (event.kind == "stage" && body.value("reason", "") == "command") changes.push_back({event.step, true, "", ""});
  }
  return changes;
}

void apply_changes(Trainer& trainer, std::vector<ScheduledChange>& changes) {
  while (!changes.empty() && changes.front().step <= trainer.state().step + 1) {
    const ScheduledChange change = changes.front();
    changes.erase(changes.begin());
    if (change.late_stage) trainer.request_late();
    else trainer.edit(change.path, change.value);
  }
}

RunData open_run_data(const RunConfig& config) {
  if (config.data.set.empty())
    throw Error(ErrorCode::config, "no data set is given", "data.set is empty", "use --set data.set=NAME; comera data list shows the names");
  DataSpec spec;
  spec.path = config.data.set;
  spec.vocab = config.data.vocab;
  spec.assets = assets_folder();
  RunData data;
  data.train = std::make_shared<FirstRows>(open_dataset(spec), config.data.train_rows);
  spec.split = "dev";
  spec.classes = data.train->info().classes;
  if (fs::is_directory(spec.path) || !fs::exists(spec.path))  // a single file has no other split
    data.validation = std::make_shared<FirstRows>(open_dataset(spec), config.data.validation_rows);
  return data;
}

// ---- the run -----------------------------------------------------------------------------------------------------

Runner::Runner(Session& session, SessionStart start) : session_(session), start_(std::move(start)) {
  began_ = last_publish_ = last_checkpoint_ = Clock::now();
}
Runner::~Runner() = default;

void Runner::run() {
  try {
    prepare();
    loop();
  } catch (const Error& error) {
    snapshot_.message = error.what();
    snapshot_.error_why = error.why();
    snapshot_.error_hint = error.hint();
    snapshot_.error_code = static_cast<int>(error.code());
    end(error.code() == ErrorCode::diverged ? Phase::diverged : Phase::failed);
  } catch (const std::bad_alloc&) {
    snapshot_.message = "out of memory";
    snapshot_.error_why = "the system refused an allocation";
    snapshot_.error_hint = "use a smaller batch: --set train.batch=8";
    snapshot_.error_code = static_cast<int>(ErrorCode::memory);
    end(Phase::failed);
  } catch (const std::exception& error) {
    snapshot_.message = error.what();
    snapshot_.error_code = static_cast<int>(ErrorCode::other);
    end(Phase::failed);
  }
}

void Runner::prepare() {
  snapshot_.phase = Phase::preparing;
  publish(true);
  if (!start_.resume_run.empty()) begin_resume();
  else if (!start_.fork_run.empty()) begin_fork();
  else begin_new(start_.config, "", 0);
  paused_ = start_.paused;
  recorder_.watch(trainer_.get());
}

void Runner::make_trainer(const RunConfig& config) {
  trainer_.reset();
  if (!device_) device_ = open_device(config.train.device, static_cast<int>(config.train.threads));
  data_ = open_run_data(config);
  trainer_ = std::make_unique<Trainer>(config, data_.train, data_.validation, *device_, recorder_);
  check_fits(trainer_->engine().planned());
  snapshot_.memory_planned = trainer_->engine().planned();
  snapshot_.device = device_->name();
  initial_ranks_.clear();
  for (const RankLayer& layer : trainer_->engine().params().rank_layers()) {
    initial_ranks_.emplace_back();
    for (const Param* rank : layer.ranks) initial_ranks_.back().push_back(rank->count());
  }
}

// A run record in the store, for a run that begins now.
void Runner::begin_record(const std::string& parent, int64_t fork_step) {
  const RunConfig& config = trainer_->config();
  snapshot_.name = config.name;
  if (start_.store.empty()) return;
  RunStart record;
  record.name = config.name;
  record.config = config_to_json(config).dump();
  record.seed = config.train.seed;
  record.device = device_->name();
  record.data_fingerprint = data_.train->info().fingerprint;
  record.parent = parent;
  record.fork_step = fork_step;
  record.total_steps = trainer_->total_steps();
  record.tags = start_.tags;
  recorder_.replace_writer(std::make_unique<RunWriter>(start_.store, record));
  run_id_ = snapshot_.run = recorder_.writer()->run_id();
  checkpoint_folder_ = (start_.checkpoint_folder.empty() ? fs::path(start_.store).parent_path() / "checkpoints" : fs::path(start_.checkpoint_folder)) / run_id_;
}

void Runner::begin_new() {
  make_trainer(start_.config);
  begin_record("", 0);
  trainer_->start();
}

void Runner::begin_resume() {
  std::string id;
  RunConfig config;
  std::string checkpoint;
  int64_t from = 0;
  {
    const RunReader reader(start_.store);
    const RunRow run = reader.find(start_.resume_run);
    if (run.status == "running")
      throw Error(ErrorCode::usage, "run " + run.id + " is still running", "its process " + std::to_string(run.pid) + " is alive", "stop it first, or fork it");
    id = run.id;
    snapshot_.name = run.name;
    config = config_from_json(parse_json(run.config, "the stored config"), "run " + id);
    const int64_t limit = start_.at_step >= 0 ? start_.at_step : INT64_MAX;
    for (const CheckpointRow& row : reader.checkpoints(id)) {
      if (!fs::exists(row.path)) continue;
      checkpoints_[row.step] = row.path;
      if (row.step <= limit && row.step >= from) {
        from = row.step;
        checkpoint = row.path;
      }
    }
    scheduled_ = stored_changes(reader, id, from);
  }
  if (start_.at_step >= 0)
    for (auto it = checkpoints_.upper_bound(from); it != checkpoints_.end();) it = checkpoints_.erase(it);
  make_trainer(checkpoint.empty() ? config : checkpoint_config(checkpoint));
  if (checkpoint.empty()) {
    recorder_.mute(true);
    trainer_->start();
    recorder_.mute(false);
  } else {
    recorder_.mute(true);
    trainer_->restore(checkpoint);
    recorder_.mute(false);
  }
  run_id_ = snapshot_.run = id;
  checkpoint_folder_ = (start_.checkpoint_folder.empty() ? fs::path(start_.store).parent_path() / "checkpoints" : fs::path(start_.checkpoint_folder)) / run_id_;
  recorder_.replace_writer(std::make_unique<RunWriter>(start_.store, id));
  recorder_.writer()->truncate_after(trainer_->state().step);
  recorder_.on_event(trainer_->state().step, "resume", {{"from_step", trainer_->state().step}});
  // The changes that are made again below are in the log at once: another kill must not lose them.
  for (const ScheduledChange& change : scheduled_)
    if (change.late_stage) recorder_.on_event(change.step, "stage", {{"stage", "late"}, {"reason", "command"}});
    else recorder_.on_event(change.step, "edit", {{"path", change.path}, {"value", change.value}});
  recorder_.expect(scheduled_.size());
  if (start_.extend > 0) trainer_->edit("train.steps", std::to_string(trainer_->total_steps() + start_.extend));
  apply_sets();
}

}  // namespace comera
