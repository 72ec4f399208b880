// How a run begins: new, resumed, or as a fork; with what was asked of it before its first step.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/base/remove_later.h"
#include "core/data/kept_tokenizer.h"
#include "core/data/tokenizer.h"
#include "core/session/folder_run.h"
#include "core/session/reproduce.h"
#include "core/session/runner.h"
#include "core/session/version.h"
#include "core/session/with_others.h"
#include "core/store/checkpoint_files.h"
#include "core/store/process.h"
#include "core/store/run_admin.h"
#include "core/store/run_reader.h"
#include "core/train/checkpoint.h"
#include "core/train/device_links.h"
#include "core/train/forecast.h"
#include "core/train/trainer.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

// Seconds since 1970; 0 when it is not known.
double written_at(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
}

std::string stopped_early(const TrainState& state) {
  return "it stopped early: no better validation loss in " + std::to_string(state.worse) + " evaluations";
}

bool has_data(const RunConfig& config) {
  try {
    find_data_file(data_spec(config));
    return config.data.vocab.empty() || fs::exists(tokenizer_file(config.data.vocab));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void Runner::prepare() {
  snapshot_.phase = Phase::preparing;
  publish(true);
  if (!start_.resume_run.empty())
    begin_resume();
  else if (!start_.fork_run.empty())
    begin_fork();
  else
    begin_new();
  paused_ = start_.paused;
  if (trainer_) trainer_->guard_growth();
}

void Runner::make_trainer(const RunConfig& config, const std::string& checkpoint, const StoredRun* source, bool alone) {
  trainer_.reset();
  if (threads_) {
    device_.reset();  // it may be linked with theirs
    threads_.reset();
  }
  Communicator* others = alone ? nullptr : start_.others.get();
  if (!others && (threads_ = others_in_threads(config))) others = &threads_->others();
  const std::string& name = start_.device.empty() ? config.train.device : start_.device;
  if (others) tell_of_trainer(*others, config, name, checkpoint);
  if (!device_) {
    const int threads = static_cast<int>(config.train.threads);
    device_ = start_.open ? start_.open(name, threads) : others ? open_share_of_device(name, threads, *others) : open_device(name, threads);
  }
  if (others) link_devices(*device_, *others);
  const auto reading = [this](double share) {
    snapshot_.message = "reading the data: " + std::to_string(std::lround(100 * share)) + " %";
    publish(false);
  };
  try {
    data_ = source ? open_run_data(config, *source, reading) : open_run_data(config, reading);
  } catch (const Error& error) {
    const bool by_path = (config.data.set + config.data.vocab).find('/') != std::string::npos;  // not by the name of a set
    if (!source || !by_path || error.code() != ErrorCode::not_found) throw;
    throw Error(error.code(), error.what(), "the data of run " + source->id + " were there when it was trained",
                "add --set data.set=PATH, or data.vocab=PATH, where they are now");
  }
  snapshot_.message.clear();
  trainer_ = std::make_unique<Trainer>(config, data_.train, data_.validation, *device_, recorder_, others, checkpoint);
  if (others) tell_calls_of(*trainer_, *others);
  recorder_.watch(trainer_.get());
  snapshot_.memory_planned = trainer_->engine().planned();
  snapshot_.step_memory = std::make_shared<const StepMemory>(trainer_->engine().step_memory());
  snapshot_.device = device_->name();
  snapshot_.ranked = ranked_matrices(trainer_->engine().params(), config.method);
}

// Throws Error(memory) when the plan does not fit.
void Runner::check_room() { check_fits(snapshot_.memory_planned, available_on(*device_)); }

// The same of a run that would begin now. It is kept in the store all the same, with what was asked of it.
void Runner::check_room_to_begin(const std::string& parent, int64_t fork_step) {
  try {
    check_room();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::memory) throw;
    try {
      begin_record(parent, fork_step);
      recorder_.mute(false);
      if (!start_.folder.path.empty()) recorder_.tell(0, event_of_folder());
      for (const ScheduledChange& change : given_changes(fork_step + 1)) enter_in_log(change);
    } catch (const std::exception&) {  // what is wrong with the store is not why the run ends
    }
    throw;
  }
}

// A run record in the store, for a run that begins now.
void Runner::begin_record(const std::string& parent, int64_t fork_step) {
  snapshot_.name = trainer_->config().name;
  if (start_.store.empty()) return;
  recorder_.use(std::make_unique<RunWriter>(start_.store, record_of(trainer_->config(), parent, fork_step)));
  use_run(recorder_.writer()->run_id(), false);
  keep_tokenizer(checkpoint_folder_);
}

RunStart Runner::record_of(const RunConfig& config, const std::string& parent, int64_t fork_step) const {
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
  return record;
}

void Runner::begin_new() {
  make_paths_absolute(start_.config);
  if (!start_.open && start_.device.empty()) start_.config.train.device = device_to_begin_on(start_.config.train.device);
  if (start_.others) share_batches(start_.config, *start_.others);
  if (!start_.folder.path.empty()) return begin_with_folder();
  make_trainer(start_.config);
  check_changes();
  check_room_to_begin("", 0);
  begin_record("", 0);
  trainer_->start();
  recorder_.tell(
      0, StartEvent{
             .program = version_stored(), .device = device_->name(), .blas = device_->blas(), .processes = processes(), .link = link()});
  make_changes();
}

// The weights become a checkpoint of step 0 before the trainer exists, so that only one of the two takes memory at a time. The log names
// the folder before anything can fail: otherwise a resumed run would begin with drawn weights.
void Runner::begin_with_folder() {
  snapshot_.name = start_.config.name;
  snapshot_.message = "reading the weights of " + start_.folder.path;
  publish(false);
  const std::string beside = start_.store.empty() ? (fs::temp_directory_path() / "comera").string() : start_.store;
  const std::string first = fs::absolute(beside).string() + ".weights-" + random_text(8) + ".safetensors";
  const RemoveLater remove_first(first);
  start_.folder.weights = weights_of_folder(start_.folder, start_.config, [this] { return takes_stop(); });
  write_start(*start_.folder.weights, start_.config, first);
  start_.folder.weights.reset();
  make_trainer(start_.config, first);
  check_changes();
  check_room_to_begin("", 0);
  recorder_.mute(true);
  trainer_->restore(first);
  std::error_code ignored;
  fs::remove(first, ignored);  // its space is needed for the first checkpoint
  recorder_.mute(false);
  begin_record("", 0);
  keeps_start_ = true;
  recorder_.tell(0, event_of_folder());
  if (recorder_.writer()) recorder_.writer()->flush();
  trainer_->report_all();
  checkpoint("start");
  make_changes();
}

StartEvent Runner::event_of_folder() const {
  const FolderStart& from = start_.folder;
  return {.program = version_stored(),
          .device = device_->name(),
          .blas = device_->blas(),
          .held = held_ranks(trainer_->engine().params()),
          .imported = fs::absolute(from.path).lexically_normal().string(),
          .most_error = from.most_error < 0 ? std::optional<double>() : from.most_error,
          .compression = from.compression > 0 ? std::optional(from.compression) : std::nullopt,
          .gradient_batches = from.gradient_batches > 0 ? std::optional(from.gradient_batches) : std::nullopt,
          .processes = processes(),
          .link = link()};
}

void Runner::use_run(const std::string& id, bool stored) {
  run_id_ = snapshot_.run = id;
  std::vector<std::string> files;
  for (const auto& [step, path] : checkpoints_) files.push_back(path);
  shares_checkpoints_ = stored && !lister_of(start_.store, id, files).empty();
  const std::string& given = start_.checkpoint_folder;
  checkpoint_folder_ = given.empty() ? checkpoint_folder(start_.store, id, shares_checkpoints_) : (fs::absolute(given) / id).string();
}

// Gives a checkpoint to the run that keeps the later steps.
void Runner::hand_over(const std::string& checkpoint, const std::string& to_run, bool own) {
  const fs::path to = moved_checkpoint(checkpoint, run_id_, to_run);
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (own)
    fs::rename(checkpoint, to, error);
  else
    fs::copy_file(checkpoint, to, error);
  if (error)
    recorder_.tell(trainer_->state().step,
                   AlertEvent{.what = "checkpoint", .text = checkpoint + " was not moved to run " + to_run + ": " + error.message()});
}

// Whether this run may remove a checkpoint, or move it: another store may list it, too.
bool Runner::is_own(const std::string& checkpoint) const {
  return !shares_checkpoints_ || fs::path(checkpoint).parent_path() == checkpoint_folder_;
}

// Copies the tokenizer, whose file may be removed later. A run trains without a copy, too.
void Runner::keep_tokenizer(const std::string& checkpoints) {
  const std::string why = comera::keep_tokenizer(trainer_->config().data.vocab, checkpoints);
  if (!why.empty())
    recorder_.tell(trainer_->state().step, AlertEvent{.what = "checkpoint", .text = "the tokenizer was not copied: " + why});
}

// Whether somebody stops the run before it has begun. Other commands wait.
bool Runner::takes_stop() {
  for (const auto& command : session_.take_commands(0))
    if (std::holds_alternative<StopCommand>(command.second))
      obey(command);
    else
      later_.push_back(command);
  return stop_;
}

// Brings a trainer to the state that run `source` had after `step` steps: from its nearest checkpoint, then by making
// the same steps with the same changes again. Nothing is recorded meanwhile. Leaves later changes in scheduled_.
void Runner::rebuild(const StoredRun& source, int64_t step, bool alone) {
  int64_t from = 0;
  std::string checkpoint;
  for (const auto& [at, path] : source.checkpoints)
    if (at <= step && at >= from) {
      from = at;
      checkpoint = path;
    }
  if (checkpoint.empty() && source.begins_with_checkpoint()) throw source.lacks_first_checkpoint();
  recorder_.mute(true);
  RunConfig config = checkpoint.empty() ? source.config : checkpoint_config(checkpoint);
  config.data.set = source.config.data.set, config.data.vocab = source.config.data.vocab;  // they may have moved since
  const auto without_checkpoint = [&] {  // meanwhile the run that still trains has removed it
    StoredRun without = source;
    without.checkpoints.erase(from);
    return rebuild(without, step, alone);
  };
  try {
    make_trainer(config, checkpoint, &source, alone);
  } catch (const Error&) {
    if (checkpoint.empty() || fs::exists(checkpoint)) throw;
    return without_checkpoint();
  }
  check_room();
  if (!checkpoint.empty() && !fs::exists(checkpoint)) return without_checkpoint();
  if (checkpoint.empty())
    trainer_->start();
  else
    trainer_->restore(checkpoint);
  scheduled_.clear();
  for (const ScheduledChange& change : source.changes)
    if (change.step > trainer_->state().step) scheduled_.push_back(change);
  while (trainer_->state().step < step && !stop_) {
    apply_changes(*trainer_, scheduled_);
    if (trainer_->finished()) break;
    trainer_->step();
    snapshot_.message = "computing step " + std::to_string(trainer_->state().step) + " of " + std::to_string(step) + " again";
    publish(false);
    takes_stop();
  }
  trainer_->drain();
  snapshot_.message.clear();
  recorder_.mute(false);
}

// Takes data.set and data.vocab from the settings given now: the data have moved since the run was trained. They must be the same data.
void Runner::use_moved_data(StoredRun& source) const {
  for (const std::string& set : start_.sets) {
    const ScheduledChange change = parse_change(set, 0);
    if (change.path == "data.set") source.config.data.set = change.value;
    if (change.path == "data.vocab") source.config.data.vocab = change.value;
  }
  make_paths_absolute(source.config);
}

void Runner::begin_resume() {
  StoredRun source = load_stored_run(start_.store, start_.resume_run);
  const DataConfig before = source.config.data;
  use_moved_data(source);
  std::erase_if(start_.sets, [](const std::string& set) { return set.starts_with("data.set=") || set.starts_with("data.vocab="); });
  if (source.status == "running")
    throw Error(ErrorCode::usage, "run " + source.id + " is still running", "process " + std::to_string(source.pid) + " trains it",
                "stop it first, or fork it");
  int64_t from = 0;
  for (const auto& [at, path] : source.checkpoints)
    if (start_.at_step < 0 || at <= start_.at_step) from = std::max(from, at);
  snapshot_.name = source.config.name;
  keeps_start_ = source.begins_with_checkpoint();
  rebuild(source, from);
  check_changes();  // before the stored run is touched
  check_goes_on(source);
  checkpoints_ = source.checkpoints;
  if (const auto last = checkpoints_.find(from); last != checkpoints_.end()) {
    snapshot_.last_checkpoint_step = from;
    snapshot_.last_checkpoint_path = last->second;
    snapshot_.last_checkpoint_at = written_at(last->second);
  }
  use_run(source.id, true);
  if (const DataConfig& now = source.config.data; now.set != before.set || now.vocab != before.vocab)
    RunAdmin(start_.store).move_data(source.id, now.set, now.vocab);
  recorder_.use(std::make_unique<RunWriter>(start_.store, source.id));
  keep_tokenizer(checkpoint_folder_);  // a run of an earlier version has none
  // Steps that are computed again come out the same, bit for bit; from where it was sent back to, or with other settings,
  // the run goes another way, and the one it went is kept.
  const bool sent_back = start_.at_step >= 0 && start_.at_step < source.step;
  const bool another_way = sent_back || !start_.sets.empty() || !start_.changes.empty();
  if (another_way && from < source.step) snapshot_.replaced = set_aside(from);
  recorder_.writer()->truncate_after(from);
  const auto later = checkpoints_.upper_bound(from);
  if (later != checkpoints_.end() && recorder_.writer()->flush())
    for (auto it = later; it != checkpoints_.end(); ++it) {
      const bool own = is_own(it->second);
      if (!snapshot_.replaced.empty())
        hand_over(it->second, snapshot_.replaced, own);
      else if (std::error_code ignored; own)
        fs::remove(it->second, ignored);
    }
  checkpoints_.erase(later, checkpoints_.end());
  ResumeEvent resumed{version_stored(), device_->name(), device_->blas(), from};
  if (!snapshot_.replaced.empty()) resumed.replaced = snapshot_.replaced;
  resumed.processes = processes();
  resumed.link = link();
  recorder_.tell(from, resumed);
  if (from == 0) trainer_->report_all();  // a run killed at once may not have stored it
  recall(source.id, from);
  // First what was changed here before, then what is changed now, so that the last word counts; a setting that is set
  // now is not set back by an older change further on.
  apply_changes(*trainer_, scheduled_);
  if (start_.extend > 0) extend(sent_back ? from : std::max(from, source.step));
  make_changes();
}

void Runner::check_goes_on(const StoredRun& source) const {
  const TrainConfig& train = trainer_->config().train;
  const auto given = given_changes(trainer_->state().step + 1);
  const auto sets = [&](const char* path) { return std::ranges::any_of(given, [&](const auto& change) { return change.path == path; }); };
  if (start_.extend > 0 && sets("train.steps"))
    throw Error(ErrorCode::usage, "run " + source.id + " cannot be extended", "train.steps is given as well", "give one of the two");
  if (start_.extend > 0 && !sets("train.patience") && train.patience > 0 && trainer_->state().worse >= train.patience)
    throw Error(ErrorCode::usage, "run " + source.id + " cannot be extended as it is", stopped_early(trainer_->state()),
                "add --set train.patience=0, or a larger one");
}

// Adds steps to the number that was planned last. The change is made after step `done`, so the steps up to it come out as they did.
void Runner::extend(int64_t done) {
  RunConfig planned = trainer_->config();
  planned.train.steps = trainer_->total_steps();
  for (const ScheduledChange& change : scheduled_)
    if (change.path == "train.steps") set_config(planned, {change.path + "=" + change.value});
  const int64_t total = planned.train.steps;
  start_.changes.insert(start_.changes.begin(), {done + 1, "train.steps", std::to_string(total + start_.extend)});
}

std::optional<int64_t> Runner::processes() const {
  return start_.others ? std::optional<int64_t>(start_.others->processes()) : std::nullopt;
}

std::optional<std::string> Runner::link() const {
  const std::string name = start_.others ? link_name(*device_, *start_.others) : "";
  return name.empty() ? std::nullopt : std::optional(name);
}

// How a fork of `parent` begins, of which no config tells.
StartEvent Runner::first_event(const std::string& parent, int64_t fork_step) const {
  Engine& engine = trainer_->engine();
  const RankOverrides& overrides = engine.method().overrides();
  return {.program = version_stored(),
          .device = device_->name(),
          .blas = device_->blas(),
          .parent = parent,
          .fork_step = fork_step,
          .late = engine.method().late(),
          .held = held_ranks(engine.params()),
          .caps = overrides.caps,
          .weights = overrides.weights,
          .processes = processes(),
          .link = link()};
}

// What the run did past `from`, where the trainer stands now, becomes a run of its own. Returns its id.
std::string Runner::set_aside(int64_t from) {
  RunWriter& writer = *recorder_.writer();
  const std::string id = writer.spare_id();
  RunConfig config = trainer_->config();
  config.name += "-" + std::string(kReplaced);
  StartEvent first_of_it = first_event(run_id_, from);
  // The program that computed the later steps, which need not be this one.
  const ComputedWith with = computed_with(RunReader(start_.store), run_id_, from + 1);
  first_of_it.program = with.program, first_of_it.device = with.device, first_of_it.blas = with.blas;
  ReplacedCourse course{from, record_of(config, run_id_, from), json_of(first_of_it).dump(), {}};
  course.start.tags = {std::string(kReplaced)};
  const std::string first = moved_checkpoint(checkpoint_path(from, checkpoint_folder_), run_id_, id);
  try {  // without room for this file its values are kept all the same
    fs::create_directories(fs::path(first).parent_path());
    trainer_->save(first);
    keep_tokenizer(fs::path(first).parent_path().string());
    course.checkpoint = {from, first, static_cast<int64_t>(fs::file_size(first)), "start", now_s()};
  } catch (const std::exception& error) {
    recorder_.tell(from, AlertEvent{.what = "checkpoint", .text = error.what()});
  }
  writer.set_aside(std::move(course));
  return id;
}

// The last values stored up to `step`, so that a run shows them before its first own step.
void Runner::recall(const std::string& run, int64_t step) {
  const RunReader reader(start_.store);
  const auto last = [&](const char* name, int64_t* at) {
    const Series series = reader.metric(run, name);
    const auto after = std::upper_bound(series.steps.begin(), series.steps.end(), step);
    if (after == series.steps.begin()) return 0.0;
    const auto index = static_cast<size_t>(after - series.steps.begin() - 1);
    *at = series.steps[index];
    return series.values[index];
  };
  StepRecord record;
  record.results.ce = last("train_loss", &record.step);
  record.results.loss = last("train_objective", &record.step);
  record.accuracy = last("train_accuracy", &record.step);
  record.target_entries = last("target_entries", &record.step);
  EvalRecord eval;
  eval.loss = last("val_loss", &eval.step);
  eval.accuracy = last("val_accuracy", &eval.step);
  for (const std::string& name : more_scores()) {
    int64_t step = 0;
    if (const double value = last(("val_" + name).c_str(), &step); step > 0) eval.more.emplace_back(name, value);
  }
  trainer_->recall(record, eval);
}

// With those that were given without a step, as of the next one.
std::vector<ScheduledChange> Runner::given_changes(int64_t next) const {
  std::vector<ScheduledChange> given;
  for (const std::string& set : start_.sets) given.push_back(parse_change(set, next));
  given.insert(given.end(), start_.changes.begin(), start_.changes.end());
  return given;
}

// What was given at the start can be done: live settings only, at steps that are still to come.
void Runner::check_changes() {
  const int64_t next = trainer_->state().step + 1;
  for (const ScheduledChange& change : given_changes(next)) {
    if (change.step < next)
      throw Error(ErrorCode::usage, "cannot change anything at step " + std::to_string(change.step),
                  "the next step is " + std::to_string(next), "name that one or a later one");
    trainer_->check_edit(change.path, change.value);
  }
}

void Runner::enter_in_log(const ScheduledChange& change) {
  if (change.of_stage())
    recorder_.tell(change.step, StageEvent{.stage = change.value, .reason = "command"});
  else
    recorder_.tell(change.step, EditEvent{.path = change.path, .value = change.value});
}

// Makes them, or remembers them for their step, each stored like one made by hand. One that is given now takes the place
// of older ones of the same setting further on.
void Runner::make_changes() {
  const std::vector<ScheduledChange> given = given_changes(trainer_->state().step + 1);
  std::erase_if(scheduled_, [&](const ScheduledChange& change) {
    return std::any_of(given.begin(), given.end(), [&](const ScheduledChange& now) {
      return !change.of_stage() && now.path == change.path && now.step <= change.step;
    });
  });
  scheduled_.insert(scheduled_.end(), given.begin(), given.end());
  std::stable_sort(scheduled_.begin(), scheduled_.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  apply_changes(*trainer_, scheduled_);
  // Those of later steps enter the log at once: a kill must not lose them.
  for (const ScheduledChange& change : scheduled_) enter_in_log(change);
  recorder_.expect_again(scheduled_);
  if (recorder_.writer()) recorder_.writer()->flush();
}

void Runner::begin_fork() {
  StoredRun source = load_stored_run(start_.store, start_.fork_run);
  const int64_t step = start_.at_step >= 0 ? std::min(start_.at_step, source.step) : source.step;
  if (start_.at_step > source.step)
    throw Error(ErrorCode::not_found, "run " + source.id + " has no step " + std::to_string(start_.at_step),
                "it ended at step " + std::to_string(source.step), "fork at that step or before");
  if (source.is_fork() && step < source.fork_step)
    throw Error(ErrorCode::not_found, "run " + source.id + " has no step " + std::to_string(step),
                "it was forked from " + source.parent + " at step " + std::to_string(source.fork_step),
                "fork that run, or at a later step");
  if (!has_data(source.config)) use_moved_data(source);  // then those of the fork must be the parent's
  rebuild(source, step, true);                           // its batches may have fewer parts than there are processes
  scheduled_.clear();
  if (stop_) return;  // before it was there: no run begins
  // The state goes through a file, so that settings that are fixed at the start (batch, data) may change as well.
  std::vector<std::string> of_runs, of_configs;
  for (const std::string& set : std::exchange(start_.sets, {})) (only_of_runs(set) ? of_runs : of_configs).push_back(set);
  start_.sets = std::move(of_configs);
  RunConfig config = trainer_->config();
  if (std::none_of(start_.sets.begin(), start_.sets.end(), [](const std::string& set) { return set.rfind("name=", 0) == 0; }))
    config.name = source.config.name + "-fork";
  set_config(config, start_.sets);
  make_paths_absolute(config);
  if (start_.extend > 0) config.train.steps = trainer_->total_steps() + start_.extend;
  if (config.train.steps > 0 && config.train.steps <= step)
    throw Error(ErrorCode::usage, "a fork of run " + source.id + " would have no steps to train",
                "it begins at step " + std::to_string(step) + ", and train.steps is " + std::to_string(config.train.steps),
                "use more steps, counted from step 0 of the parent, or --at-step with an earlier one");
  if (config.train.steps > step && config.train.patience > 0 && trainer_->state().worse >= config.train.patience)
    throw Error(ErrorCode::usage, "a fork of run " + source.id + " would have no steps to train", stopped_early(trainer_->state()),
                "add --set train.patience=0, or fork it at an earlier step");
  // A store of the folder we are in has a name without one, and "" cannot be made.
  if (const fs::path folder = fs::path(start_.store).parent_path(); !folder.empty()) fs::create_directories(folder);
  const std::string bridge = fs::absolute(start_.store).string() + ".fork-" + random_text(8) + ".safetensors";
  const RemoveLater remove_bridge(bridge);
  if (!trainer_->averaged())
    throw Error(ErrorCode::usage, "run " + source.id + " cannot be forked at step " + std::to_string(step),
                "its processes had weights of their own then (train.sync_every " + std::to_string(source.config.train.sync_every) + ")",
                "fork at a step of a checkpoint, or at a multiple of train.sync_every");
  trainer_->save(bridge);
  start_.sets = std::move(of_runs);
  if (start_.others) share_batches(config, *start_.others);
  if (start_.others || threads_ || config.train.sync_every > 1) {
    trainer_.reset();
    device_.reset();  // opened again as a share
  }
  recorder_.mute(true);
  make_trainer(config, bridge);
  check_room_to_begin(source.id, step);
  trainer_->restore(bridge);
  recorder_.mute(false);
  keeps_start_ = true;
  check_changes();
  begin_record(source.id, step);
  trainer_->report_all();
  recall(source.id, step);
  recorder_.tell(step, first_event(source.id, step));
  checkpoint("start");
  make_changes();
}

}  // namespace comera
