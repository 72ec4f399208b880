#include "core/session/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/remove_later.h"
#include "core/session/inspect.h"
#include "core/store/process.h"
#include "core/store/run_reader.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"
#include "core/train/forecast.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Seconds since 1970; 0 when it is not known.
double written_at(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
}

std::string checkpoint_path(const std::string& folder, int64_t step) {
  char file[64];
  std::snprintf(file, sizeof file, "/step-%09lld.safetensors", static_cast<long long>(step));
  return folder + file;
}

constexpr double kPublishSeconds = 1.0 / 60;  // the screen shows no more
constexpr double kLookSeconds = 0.5;          // between two looks at a core: it is copied whole

}  // namespace

// ---- the run -----------------------------------------------------------------------------------------------------

Runner::Runner(Session& session, SessionStart start) : session_(session), start_(std::move(start)) {
  began_ = last_publish_ = last_checkpoint_ = Clock::now();
}
Runner::~Runner() = default;

void Runner::run() {
  Phase phase = Phase::failed;
  try {
    prepare();
    loop();
    return;
  } catch (const Error& error) {
    snapshot_.message = error.what();
    snapshot_.error_why = error.why();
    snapshot_.error_hint = error.hint();
    snapshot_.error_code = static_cast<int>(error.code());
    if (error.code() == ErrorCode::diverged) phase = Phase::diverged;
  } catch (const std::bad_alloc&) {
    snapshot_.message = "out of memory";
    snapshot_.error_why = "the system refused an allocation";
    snapshot_.error_hint = "use a smaller batch: --set train.batch=8";
    snapshot_.error_code = static_cast<int>(ErrorCode::memory);
  } catch (const std::exception& error) {
    snapshot_.message = error.what();
    snapshot_.error_code = static_cast<int>(ErrorCode::other);
  }
  if (snapshot_.error_code == static_cast<int>(ErrorCode::memory)) tell_lack_of_memory();
  end_badly(phase);
}

// What is told of the run takes memory as well, and asks its device: when that fails it is told without them.
void Runner::end_badly(Phase phase) {
  try {
    end(phase);
  } catch (const std::exception&) {
    trainer_.reset();
    end(phase);
  }
}

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

void Runner::make_trainer(const RunConfig& config, const StoredRun* source) {
  trainer_.reset();
  if (!device_) device_ = start_.open(start_.device.empty() ? config.train.device : start_.device, static_cast<int>(config.train.threads));
  data_ = source ? open_run_data(config, *source) : open_run_data(config);
  trainer_ = std::make_unique<Trainer>(config, data_.train, data_.validation, *device_, recorder_);
  recorder_.watch(trainer_.get());
  snapshot_.memory_planned = trainer_->engine().planned();
  snapshot_.step_memory = std::make_shared<const StepMemory>(trainer_->engine().step_memory());
  snapshot_.device = device_->name();
  initial_ranks_ = held_ranks(trainer_->engine().params());
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
      for (const ScheduledChange& change : given_changes(fork_step + 1)) enter_in_log(change);
    } catch (const std::exception&) {  // what is wrong with the store is not why the run ends
    }
    throw;
  }
}

// What the run needs and what there is, stored with it: as the rows of memory, and as an event.
void Runner::tell_lack_of_memory() try {
  if (!trainer_ || !recorder_.writer()) return;
  Engine& engine = trainer_->engine();
  const MemoryByPurpose planned = engine.planned();
  const int64_t step = trainer_->last_step().step;
  Json body = {{"kind", "memory"},
               {"text", snapshot_.message + (snapshot_.error_why.empty() ? "" : ": " + snapshot_.error_why)},
               {"need", planned.total()},
               {"in_use", engine.memory().now().total()},
               {"planned", Json::object()}};
  for (int i = 0; i < kPurposes; ++i) body["planned"][name_of(static_cast<Purpose>(i))] = planned.bytes[static_cast<size_t>(i)];
  recorder_.on_memory(step, planned);
  try {
    body["free"] = available_on(*device_);
  } catch (const Error&) {  // the device may be lost
  }
  recorder_.on_event(step, "alert", body);
} catch (const std::exception&) {  // the status and the message say it without them
}

// A run record in the store, for a run that begins now.
void Runner::begin_record(const std::string& parent, int64_t fork_step) {
  snapshot_.name = trainer_->config().name;
  if (start_.store.empty()) return;
  recorder_.use(std::make_unique<RunWriter>(start_.store, record_of(trainer_->config(), parent, fork_step)));
  use_run(recorder_.writer()->run_id());
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
  make_trainer(start_.config);
  check_changes();
  check_room_to_begin("", 0);
  begin_record("", 0);
  trainer_->start();
  recorder_.on_event(0, "start", Json::object());
  make_changes();
}

void Runner::use_run(const std::string& id) {
  run_id_ = snapshot_.run = id;
  const fs::path folder =
      start_.checkpoint_folder.empty() ? fs::path(start_.store).parent_path() / "checkpoints" : fs::path(start_.checkpoint_folder);
  checkpoint_folder_ = (folder / id).string();
}

// Brings a trainer to the state that run `source` had after `step` steps: from its nearest checkpoint, then by making
// the same steps with the same changes again. Nothing is recorded meanwhile. Leaves later changes in scheduled_.
void Runner::rebuild(const StoredRun& source, int64_t step) {
  int64_t from = 0;
  std::string checkpoint;
  for (const auto& [at, path] : source.checkpoints)
    if (at <= step && at >= from) {
      from = at;
      checkpoint = path;
    }
  if (checkpoint.empty() && source.is_fork())  // its first weights are its parent's, not those of a fresh start
    throw Error(ErrorCode::not_found, "run " + source.id + " cannot be computed again", "the checkpoint it was forked from is gone",
                "fork its parent " + source.parent + " once more");
  recorder_.mute(true);
  make_trainer(checkpoint.empty() ? source.config : checkpoint_config(checkpoint), &source);
  check_room();
  if (!checkpoint.empty() && !fs::exists(checkpoint)) {  // meanwhile the run that still trains has removed it
    StoredRun without = source;
    without.checkpoints.erase(from);
    return rebuild(without, step);
  }
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
    for (const auto& command : session_.take_commands(0))
      if (std::holds_alternative<StopCommand>(command.second))
        obey(command);
      else
        later_.push_back(command);
  }
  trainer_->drain();
  snapshot_.message.clear();
  recorder_.mute(false);
}

void Runner::begin_resume() {
  const StoredRun source = load_stored_run(start_.store, start_.resume_run);
  if (source.status == "running")
    throw Error(ErrorCode::usage, "run " + source.id + " is still running", "process " + std::to_string(source.pid) + " trains it",
                "stop it first, or fork it");
  int64_t from = 0;
  for (const auto& [at, path] : source.checkpoints)
    if (start_.at_step < 0 || at <= start_.at_step) from = std::max(from, at);
  snapshot_.name = source.config.name;
  is_fork_ = source.is_fork();
  rebuild(source, from);
  check_changes();  // before the stored run is touched
  checkpoints_ = source.checkpoints;
  if (const auto last = checkpoints_.find(from); last != checkpoints_.end()) {
    snapshot_.last_checkpoint_step = from;
    snapshot_.last_checkpoint_at = written_at(last->second);
  }
  use_run(source.id);
  recorder_.use(std::make_unique<RunWriter>(start_.store, source.id));
  // Steps that are computed again come out the same, bit for bit; from where it was sent back to, or with other settings,
  // the run goes another way, and the one it went is kept.
  const bool sent_back = start_.at_step >= 0 && start_.at_step < source.step;
  const bool another_way = sent_back || !start_.sets.empty() || !start_.changes.empty();
  if (another_way && from < source.step) snapshot_.replaced = set_aside(from);
  recorder_.writer()->truncate_after(from);
  const auto later = checkpoints_.upper_bound(from);
  if (later != checkpoints_.end() && recorder_.writer()->flush())
    for (auto it = later; it != checkpoints_.end(); ++it) {
      std::error_code ignored;
      if (snapshot_.replaced.empty())
        fs::remove(it->second, ignored);
      else
        fs::rename(it->second, moved_checkpoint(it->second, run_id_, snapshot_.replaced), ignored);
    }
  checkpoints_.erase(later, checkpoints_.end());
  Json resumed = {{"from_step", from}};
  if (!snapshot_.replaced.empty()) resumed["replaced"] = snapshot_.replaced;
  recorder_.on_event(from, "resume", resumed);
  if (from == 0) trainer_->report_all();  // a run killed at once may not have stored it
  recall(source.id, from);
  // First what was changed here before, then what is changed now, so that the last word counts; a setting that is set
  // now is not set back by an older change further on.
  apply_changes(*trainer_, scheduled_);
  if (start_.extend > 0) start_.sets.insert(start_.sets.begin(), "train.steps=" + std::to_string(trainer_->total_steps() + start_.extend));
  make_changes();
}

// How a fork of `parent` begins, of which no config tells.
Json Runner::first_event(const std::string& parent, int64_t fork_step) const {
  return {{"parent", parent},
          {"fork_step", fork_step},
          {"late", trainer_->state().late},
          {"held", held_ranks(trainer_->engine().params())},
          {"caps", trainer_->state().overrides.caps},
          {"weights", trainer_->state().overrides.weights}};
}

// What the run did past `from`, where the trainer stands now, becomes a run of its own. Returns its id.
std::string Runner::set_aside(int64_t from) {
  RunWriter& writer = *recorder_.writer();
  const std::string id = writer.spare_id();
  RunConfig config = trainer_->config();
  config.name += "-" + std::string(kReplaced);
  ReplacedCourse course{from, record_of(config, run_id_, from), first_event(run_id_, from).dump(), {}};
  course.start.tags = {std::string(kReplaced)};
  const std::string first = moved_checkpoint(checkpoint_path(checkpoint_folder_, from), run_id_, id);
  try {  // without room for this file its values are kept all the same
    fs::create_directories(fs::path(first).parent_path());
    trainer_->save(first);
    course.checkpoint = {from, first, static_cast<int64_t>(fs::file_size(first)), "start", now_s()};
  } catch (const std::exception& error) {
    recorder_.on_event(from, "alert", {{"kind", "checkpoint"}, {"text", error.what()}});
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
    if (!change.late_stage)
      trainer_->check_edit(change.path, change.value);
    else if (!trainer_->config().tensorised())
      throw Error(ErrorCode::usage, "cannot change stage", "this run has no tensor trains, so no late stage", "");
  }
}

void Runner::enter_in_log(const ScheduledChange& change) {
  if (change.late_stage)
    recorder_.on_event(change.step, "stage", {{"stage", "late"}, {"reason", "command"}});
  else
    recorder_.on_event(change.step, "edit", {{"path", change.path}, {"value", change.value}});
}

// Makes them, or remembers them for their step, each stored like one made by hand. One that is given now takes the place
// of older ones of the same setting further on.
void Runner::make_changes() {
  const std::vector<ScheduledChange> given = given_changes(trainer_->state().step + 1);
  std::erase_if(scheduled_, [&](const ScheduledChange& change) {
    return std::any_of(given.begin(), given.end(),
                       [&](const ScheduledChange& now) { return !change.late_stage && now.path == change.path; });
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
  const StoredRun source = load_stored_run(start_.store, start_.fork_run);
  const int64_t step = start_.at_step >= 0 ? std::min(start_.at_step, source.step) : source.step;
  if (start_.at_step > source.step)
    throw Error(ErrorCode::not_found, "run " + source.id + " has no step " + std::to_string(start_.at_step),
                "it ended at step " + std::to_string(source.step), "fork at that step or before");
  rebuild(source, step);
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
  if (start_.extend > 0) config.train.steps = trainer_->total_steps() + start_.extend;
  // A store of the folder we are in has a name without one, and "" cannot be made.
  if (const fs::path folder = fs::path(start_.store).parent_path(); !folder.empty()) fs::create_directories(folder);
  const std::string bridge = start_.store + ".fork-" + std::to_string(::getpid()) + ".safetensors";
  const RemoveLater remove_bridge(bridge);
  trainer_->save(bridge);
  start_.sets = std::move(of_runs);
  recorder_.mute(true);
  make_trainer(config);
  check_room_to_begin(source.id, step);
  trainer_->restore(bridge);
  recorder_.mute(false);
  is_fork_ = true;
  check_changes();
  begin_record(source.id, step);
  trainer_->report_all();
  recall(source.id, step);
  recorder_.on_event(step, "start", first_event(source.id, step));
  checkpoint("start");
  make_changes();
}

// ---- the loop ----------------------------------------------------------------------------------------------------

void Runner::loop() {
  snapshot_.phase = Phase::running;
  publish(true);
  began_ = last_checkpoint_ = Clock::now();
  for (const auto& command : std::exchange(later_, {}))
    if (!stop_) obey(command);
  while (!stop_) {
    for (const auto& command : session_.take_commands(paused_ ? 0.2 : 0)) obey(command);
    if (stop_) break;
    if (start_.max_seconds > 0 && seconds_since(began_) > start_.max_seconds) break;
    if (paused_) {
      trainer_->drain();
      snapshot_.phase = Phase::paused;
      publish(true);
      continue;
    }
    apply_changes(*trainer_, scheduled_);
    if (trainer_->finished()) break;
    snapshot_.phase = Phase::running;
    const int64_t told = recorder_.events();
    profiler_.before(trainer_->engine());
    trainer_->step();
    if (const auto profile = profiler_.after(trainer_->engine(), trainer_->last_step()))
      recorder_.on_event(profile->step, "profile", profile->to_json());
    recorder_.on_sample(trainer_->last_step().step, sampler_.after_step(trainer_->last_step(), *device_));
    const TrainConfig& train = trainer_->config().train;
    const int64_t step = trainer_->state().step;
    const bool by_steps = train.checkpoint_every > 0 && step % train.checkpoint_every == 0;
    const bool by_time = train.checkpoint_minutes > 0 && seconds_since(last_checkpoint_) > 60 * train.checkpoint_minutes;
    if ((by_steps || by_time) && !trainer_->finished()) checkpoint("periodic");
    const bool refused = pauses_after_refusal();
    if (refused || (run_until_ >= 0 && step >= run_until_) || (to_event_ && recorder_.events() > told)) {
      pause();
      trainer_->drain();
      snapshot_.phase = Phase::paused;
    }
    publish(paused_);
  }
  trainer_->drain();
  const bool finished = trainer_->finished();
  snapshot_.phase = Phase::stopping;
  publish(true);
  if (finished || stop_checkpoint_) checkpoint(finished ? "final" : "stop");
  end(finished ? Phase::finished : Phase::stopped);
}

void Runner::pause() {
  paused_ = true;
  run_until_ = -1;
  to_event_ = false;
}

// Where nobody could resume it the run goes on, with the ranks it has.
bool Runner::pauses_after_refusal() { return trainer_ && trainer_->take_refusal() && start_.attended; }

void Runner::obey(const std::pair<Ticket, Command>& command) {
  struct Visitor {
    Runner& runner;
    void operator()(const PauseCommand&) { runner.pause(); }
    void operator()(const ResumeCommand&) {
      runner.pause();
      runner.paused_ = false;
    }
    void operator()(const StopCommand& stop) {
      runner.stop_ = true;
      runner.stop_checkpoint_ = stop.checkpoint;
    }
    void operator()(const CheckpointCommand&) { runner.checkpoint("command"); }
    void operator()(const StepCommand& step) {
      runner.paused_ = false;
      runner.to_event_ = step.to_event;
      runner.run_until_ = step.to_event ? -1 : runner.trainer_->state().step + std::max<int64_t>(1, step.steps);
    }
    void operator()(const EditCommand& edit) { runner.edit(edit); }
    void operator()(const LateStageCommand&) { runner.trainer_->request_late(); }
    void operator()(const InspectCommand& what) { runner.inspect(what); }
    void operator()(const ProfileCommand& profile) { runner.profiler_.ask(profile.steps, runner.device_rates()); }
    void operator()(const AlertCommand& alert) {
      runner.recorder_.on_event(std::clamp<int64_t>(alert.step, 0, runner.trainer_->steps_told()), "alert",
                                {{"kind", alert.kind}, {"text", alert.text}});
      if (runner.to_event_) runner.pause();
    }
  };
  snapshot_.last_refusal.clear();
  if (trainer_) trainer_->drain();  // here, since what the steps under way came to is no answer to the command
  try {
    std::visit(Visitor{*this}, command.second);
  } catch (const Error& error) {
    snapshot_.last_refusal = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    if (pauses_after_refusal()) pause();
  }
  snapshot_.last_ticket = command.first;
  snapshot_.last_ticket_step = trainer_ ? trainer_->state().step + 1 : 0;
}

// The last word counts: an older change of the same setting, due further on after a resume, is not made again.
void Runner::edit(const EditCommand& edit) {
  trainer_->check_growth(edit.path, edit.value);
  trainer_->edit(edit.path, edit.value);
  const auto older = [&](const ScheduledChange& change) { return !change.late_stage && change.path == edit.path; };
  if (std::erase_if(scheduled_, older) == 0) return;
  recorder_.expect_again(scheduled_);
  if (recorder_.writer()) recorder_.writer()->forget_edits(edit.path, trainer_->state().step + 1);
}

void Runner::inspect(const InspectCommand& what) {
  const auto& layers = trainer_->engine().params().rank_layers();
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const RankLayer& layer) { return layer.name == what.layer; });
  inspected_layer_ = found - layers.begin();
  inspected_bond_ = inspected_core_ = 0;
  snapshot_.inspected_core = {};
  if (what.bond == 0 && what.core == 0) return;
  const auto has = [&](int64_t number, const auto& parts) { return number >= 0 && number <= static_cast<int64_t>(parts.size()); };
  if (found == layers.end() || !has(what.bond, found->ranks) || !has(what.core, found->cores))
    throw Error(ErrorCode::usage,
                (what.bond ? "no bond '" : "no core '") + what.layer + "." + std::to_string(what.bond ? what.bond : what.core) + "'",
                "this model has none of that name");
  inspected_bond_ = what.bond;
  inspected_core_ = what.core;
}

// Now and then while somebody looks, not with every snapshot; at once when it is paused.
void Runner::look_at_core() {
  InspectedCore& seen = snapshot_.inspected_core;
  const int64_t step = trainer_->state().step;
  if (inspected_core_ == 0 || (seen.core != 0 && (seen.step == step || (!paused_ && seconds_since(last_look_) < kLookSeconds)))) return;
  last_look_ = Clock::now();
  const RankLayer& layer = trainer_->engine().params().rank_layers()[static_cast<size_t>(inspected_layer_)];
  const Param& core = *layer.cores[static_cast<size_t>(inspected_core_ - 1)];
  std::vector<int64_t> shape;
  for (int axis = 0; axis < core.shape.rank(); ++axis) shape.push_back(core.shape[axis]);
  seen = describe_core(layer.name, inspected_core_, step, std::move(shape), to_host(*device_, core.value));
  if (trainer_->engine().has_gradients()) seen.gradient_norm = norm_of(to_host(*device_, core.grad));
}

// Once a session. Where there is no room for it they are not known.
const DeviceRates& Runner::device_rates() {
  if (rates_) return *rates_;
  rates_.emplace();
  if (available_on(*device_) > 2 * kRatesBytes) try {
      *rates_ = measure_rates(*device_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::memory) throw;
    } catch (const std::bad_alloc&) {
    }
  return *rates_;
}

void Runner::checkpoint(const char* kind) {
  if (!recorder_.writer()) return;
  trainer_->drain();  // here, since a loss that turns out not to be finite ends the run, and a full disk below does not
  const int64_t step = trainer_->state().step;
  const std::string path = checkpoint_path(checkpoint_folder_, step);
  last_checkpoint_ = Clock::now();
  snapshot_.saving = {.step = step};
  publish(true);
  try {
    fs::create_directories(checkpoint_folder_);
    const WatchWrites watch([this](int64_t done, int64_t total) {
      snapshot_.saving.done = done;
      snapshot_.saving.total = total;
      publish(done == total);
    });
    trainer_->save(path);
    snapshot_.saving = {};
  } catch (const std::exception& error) {  // a full disk must not end training, nor must a copy that the host has no room for
    snapshot_.saving = {};
    const std::string why = dynamic_cast<const std::bad_alloc*>(&error) ? "out of memory" : error.what();
    recorder_.on_event(step, "alert", {{"kind", "checkpoint"}, {"text", why}});
    checkpoint_problem_ = "the checkpoint of step " + std::to_string(step) + " was not written: " + why;
    return;
  }
  checkpoint_problem_.clear();
  checkpoints_[step] = path;
  snapshot_.last_checkpoint_step = step;
  snapshot_.last_checkpoint_at = now_s();
  recorder_.writer()->checkpoint(step, path, static_cast<int64_t>(fs::file_size(path)), kind);
  recorder_.on_event(step, "checkpoint", {{"path", path}, {"kind", kind}});
  // A kill right after this must find it in the store, and only then may older ones go.
  if (recorder_.writer()->flush()) prune_checkpoints();
}

// Keeps the newest ones, the first of a fork (its start), and the one nearest after the best score.
void Runner::prune_checkpoints() {
  const int64_t keep = trainer_->config().train.keep_checkpoints;
  const auto best = checkpoints_.lower_bound(trainer_->state().best_step);
  const int64_t best_step = best == checkpoints_.end() ? -1 : best->first;
  const int64_t first = checkpoints_.begin()->first;
  int64_t surplus = static_cast<int64_t>(checkpoints_.size()) - keep;
  for (auto it = checkpoints_.begin(); it != checkpoints_.end() && surplus > 0;) {
    --surplus;
    if (it->first == best_step || (it->first == first && is_fork_)) {
      ++it;
      continue;
    }
    std::error_code ignored;
    fs::remove(it->second, ignored);
    recorder_.writer()->forget_checkpoint(it->first);
    it = checkpoints_.erase(it);
  }
}

void Runner::end(Phase phase) {
  snapshot_.phase = phase;
  if (phase == Phase::failed) inspected_bond_ = inspected_core_ = 0;  // the device may be what failed
  if (RunWriter* writer = recorder_.writer()) {
    update_summary();
    std::string message = snapshot_.message;
    if (snapshot_.error_code == static_cast<int>(ErrorCode::memory) && !message.starts_with(kOutOfMemory))
      message = std::string(kOutOfMemory) + ": " + message;
    writer->finish(name_of(phase), message);
    writer->flush();
  }
  publish(true);
  trainer_.reset();  // on this thread, before the device goes
}

// ---- what others see ---------------------------------------------------------------------------------------------

// Before the first values are drawn there are no ranks to count.
bool Runner::knows_size() const { return !trainer_->live_ranks().empty() || trainer_->engine().params().rank_layers().empty(); }

void Runner::update_summary() {
  if (!trainer_ || !recorder_.writer()) return;
  const EvalRecord& eval = trainer_->last_eval();
  RunSummary summary;
  summary.step = trainer_->steps_told();
  summary.total_steps = trainer_->total_steps();
  summary.stage = trainer_->state().late ? "late" : "early";
  if (trainer_->last_step().step > 0) summary.train_loss = trainer_->last_step().results.ce;
  if (eval.examples > 0) {
    summary.val_loss = eval.loss;
    summary.val_accuracy = eval.accuracy;
  }
  if (knows_size()) {
    const ModelSize size = trainer_->size();
    summary.entries = size.entries;
    summary.bytes = size.bytes;
    summary.dense_bytes = size.bytes * size.compression;
    summary.compression = size.compression;
  }
  if (const int64_t peak = trainer_->engine().memory().peak().total(); peak > 0) summary.peak_bytes = static_cast<double>(peak);
  if (const double step_ms = recorder_.step_ms_quantile(0.5); step_ms > 0) summary.step_ms = step_ms;
  recorder_.writer()->summary(summary);
}

void Runner::publish(bool force) {
  if (!force && seconds_since(last_publish_) < kPublishSeconds) return;
  last_publish_ = Clock::now();
  if (trainer_) {
    const TrainState& state = trainer_->state();
    snapshot_.step = trainer_->steps_told();
    snapshot_.total_steps = trainer_->total_steps();
    snapshot_.epoch = trainer_->last_step().epoch;
    snapshot_.total_epochs = static_cast<double>(snapshot_.total_steps) / static_cast<double>(trainer_->steps_per_epoch());
    snapshot_.late = state.late;
    snapshot_.last = trainer_->last_step();
    snapshot_.target_entries = snapshot_.last.target_entries;
    snapshot_.eval = trainer_->last_eval();
    snapshot_.best_loss = state.best_loss;
    snapshot_.best_accuracy = state.best_accuracy;
    snapshot_.best_step = state.best_step;
    if (knows_size()) snapshot_.size = trainer_->size();
    snapshot_.ranks.clear();
    const auto& layers = trainer_->engine().params().rank_layers();
    const LiveRanks held = held_ranks(trainer_->engine().params());
    for (size_t i = 0; i < layers.size() && i < trainer_->live_ranks().size(); ++i)
      snapshot_.ranks.push_back(layer_ranks(layers[i], trainer_->live_ranks()[i], held[i], initial_ranks_[i], state.overrides));
    snapshot_.inspected = {};
    if (inspected_bond_ > 0) {
      const RankLayer& layer = layers[static_cast<size_t>(inspected_layer_)];
      snapshot_.inspected = {layer.name, inspected_bond_, state.step,
                             to_host(*device_, layer.ranks[static_cast<size_t>(inspected_bond_ - 1)]->value)};
    }
    look_at_core();
    snapshot_.memory_now = trainer_->engine().memory().now();
    snapshot_.memory_peak = trainer_->engine().memory().peak();
    // The largest plan so far: a growth makes a larger one.
    if (const MemoryByPurpose planned = trainer_->engine().planned(); planned.total() > snapshot_.memory_planned.total())
      snapshot_.memory_planned = planned;
    const double step_ms = recorder_.recent_step_ms();
    snapshot_.steps_per_s = step_ms > 0 ? 1000 / step_ms : 0;
    snapshot_.tokens_per_s = snapshot_.steps_per_s * recorder_.mean_tokens();
    snapshot_.eta_s = static_cast<double>(snapshot_.total_steps - snapshot_.step) * step_ms / 1000;
    if (force) {
      snapshot_.step_ms_median = recorder_.step_ms_quantile(0.5);
      snapshot_.step_ms_p95 = recorder_.step_ms_quantile(0.95);
    }
    update_summary();
  }
  snapshot_.elapsed_s = seconds_since(began_);
  snapshot_.pause_at = run_until_;
  snapshot_.pause_at_event = to_event_;
  snapshot_.saved_at = recorder_.writer() ? recorder_.writer()->saved_at() : 0;
  snapshot_.store_problem = recorder_.writer() ? recorder_.writer()->store_problem() : "";
  if (snapshot_.store_problem.empty()) snapshot_.store_problem = checkpoint_problem_;
  session_.publish(std::make_shared<const Snapshot>(snapshot_), recorder_.take_records());
}

}  // namespace comera
