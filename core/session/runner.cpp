#include "core/session/runner.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "core/base/error.h"
#include "core/config/renamed_settings.h"
#include "core/session/with_others.h"
#include "core/store/process.h"
#include "core/store/rescue.h"
#include "core/tensor/safetensors.h"
#include "core/train/forecast.h"
#include "core/train/trainer.h"

namespace comera {
namespace fs = std::filesystem;
namespace {
constexpr double kLongestWait = 0.2;  // seconds without a look at the time
}

Runner::Runner(Session& session, SessionStart start) : session_(session), start_(std::move(start)) {
  began_ = last_publish_ = last_checkpoint_ = Clock::now();
}
Runner::~Runner() = default;

double Runner::seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void Runner::run() {
  Phase phase = Phase::failed;
  try {
    prepare();
    loop();
    if (start_.others) tell_end(*start_.others);
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
  if (start_.others)
    start_.others->fail(Error(static_cast<ErrorCode>(snapshot_.error_code), snapshot_.message, snapshot_.error_why, snapshot_.error_hint));
  if (snapshot_.error_code == static_cast<int>(ErrorCode::memory)) tell_lack_of_memory();
  keep_last_step();
  end_badly(phase);
}

// Saves the last step when the next batch cannot be read, so that a resume repeats no step once the data are back.
void Runner::keep_last_step() try {
  const auto code = static_cast<ErrorCode>(snapshot_.error_code);
  if (code != ErrorCode::config && code != ErrorCode::not_found && code != ErrorCode::storage) return;
  if (!trainer_ || start_.others || threads_ || !trainer_->between_steps()) return;
  if (trainer_->state().step > std::max<int64_t>(0, snapshot_.last_checkpoint_step)) checkpoint("failed", true);
} catch (const std::exception&) {  // then the checkpoint before it is the last
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

// What the run needs and what there is, stored with it: as the rows of memory, and as an event.
void Runner::tell_lack_of_memory() try {
  if (!trainer_ || !recorder_.writer()) return;
  Engine& engine = trainer_->engine();
  const MemoryByPurpose planned = engine.planned();
  const int64_t step = trainer_->last_step().step;
  AlertEvent alert{.what = "memory",
                   .text = snapshot_.message + (snapshot_.error_why.empty() ? "" : ": " + snapshot_.error_why),
                   .need = planned.total(),
                   .in_use = engine.memory().now().total()};
  alert.planned.emplace();
  for (int i = 0; i < kPurposes; ++i) (*alert.planned)[name_of(static_cast<Purpose>(i))] = planned.bytes[static_cast<size_t>(i)];
  recorder_.on_memory(step, planned);
  try {
    alert.free = available_on(*device_);
  } catch (const Error&) {  // the device may be lost
  }
  recorder_.tell(step, alert);
} catch (const std::exception&) {  // the status and the message say it without them
}

void Runner::loop() {
  snapshot_.phase = Phase::running;
  publish(true);
  began_ = last_checkpoint_ = Clock::now();
  for (const auto& command : std::exchange(later_, {}))
    if (!stop_) obey(command);
  while (!stop_) {
    for (const auto& command : session_.take_commands(paused_ ? kLongestWait : wait_s())) obey(command);
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
    if (wait_s() > 0) {  // a command came, or the wait is a long one
      publish(true);
      continue;
    }
    rate_limit_.begin(trainer_->config().train.max_steps_per_s, Clock::now());
    const int64_t told = recorder_.events();
    train_step();
    const TrainConfig& train = trainer_->config().train;
    const int64_t step = trainer_->state().step;
    const bool by_steps = train.checkpoint_every > 0 && step % train.checkpoint_every == 0;
    const bool by_time = train.checkpoint_minutes > 0 && seconds_since(last_checkpoint_) > 60 * train.checkpoint_minutes;
    const bool is_best = train.checkpoint_best && trainer_->state().best_step == step;
    if (by_steps || by_time || is_best) due_checkpoint_ = is_best ? "best" : "periodic";
    write_due_checkpoint();
    const bool refused = pauses_after_refusal();
    if (refused || (run_until_ >= 0 && step >= run_until_) || (to_event_ && recorder_.events() > told)) {
      pause();
      trainer_->drain();
      snapshot_.phase = Phase::paused;
    }
    if (wait_s() > 0) trainer_->drain();  // there is time for it
    publish(paused_);
  }
  trainer_->drain();
  while (stop_checkpoint_ && !trainer_->averaged()) {
    apply_changes(*trainer_, scheduled_);  // which may take the mean
    if (!trainer_->averaged()) train_step();
  }
  trainer_->drain();
  const bool finished = trainer_->finished();
  snapshot_.phase = Phase::stopping;
  publish(true);
  if (finished || stop_checkpoint_) checkpoint(finished ? "final" : "stop", true);
  end(finished ? Phase::finished : Phase::stopped);
}

void Runner::train_step() {
  profiler_.before(trainer_->engine());
  trainer_->step();
  if (const auto profile = profiler_.after(trainer_->engine(), trainer_->last_step()))
    recorder_.on_event(profile->step, "profile", profile->to_json());
  recorder_.on_sample(trainer_->last_step().step, sampler_.after_step(trainer_->last_step(), *device_));
}

// Waits for the next mean where processes train weights of their own (train.sync_every). The end writes a checkpoint of its own.
void Runner::write_due_checkpoint() {
  if (due_checkpoint_.empty() || !trainer_->averaged() || (trainer_->finished() && due_checkpoint_ != "command")) return;
  checkpoint(std::exchange(due_checkpoint_, {}).c_str());
}

// Until the next step may begin. Commands are taken meanwhile.
double Runner::wait_s() const {
  if (trainer_->finished()) return 0;
  return std::min(kLongestWait, rate_limit_.wait_s(trainer_->config().train.max_steps_per_s, Clock::now()));
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
    void operator()(const CheckpointCommand&) {
      runner.due_checkpoint_ = "command";
      runner.write_due_checkpoint();
    }
    void operator()(const StepCommand& step) {
      runner.paused_ = false;
      runner.to_event_ = step.to_event;
      runner.run_until_ = step.to_event ? -1 : runner.trainer_->state().step + std::max<int64_t>(1, step.steps);
    }
    void operator()(const EditCommand& edit) { runner.edit(edit); }
    void operator()(const ForeseeCommand& ask) { runner.foresee(ask); }
    void operator()(const InspectCommand& what) { runner.inspect(what); }
    void operator()(const ProfileCommand& profile) { runner.profiler_.ask(profile.steps, runner.device_rates()); }
    void operator()(const AlertCommand& alert) {
      runner.recorder_.tell(std::clamp<int64_t>(alert.step, 0, runner.trainer_->steps_told()),
                            AlertEvent{.what = alert.kind, .text = alert.text});
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

// The last word counts: an older change of the same setting, due further on after a resume, is not made again. A stage that is
// to come has its step still.
void Runner::edit(const EditCommand& edit) {
  const std::string path = current_path(edit.path);
  trainer_->check_room(path, edit.value);
  trainer_->edit(path, edit.value);
  const auto older = [&](const ScheduledChange& change) { return !change.of_stage() && change.path == path; };
  if (std::erase_if(scheduled_, older) == 0) return;
  recorder_.expect_again(scheduled_);
  for (const std::string& name : {path, former_path(path)})
    if (recorder_.writer() && !name.empty()) recorder_.writer()->forget_edits(name, trainer_->state().step + 1);
}

// A larger value never takes less, so the largest that fits lies between two that are halved.
void Runner::foresee(const ForeseeCommand& ask) {
  const MemoryByPurpose held = trainer_->engine().memory().now();
  const int64_t room = held.total() + available_on(*device_);
  const auto fits = [&](int64_t value) { return trainer_->planned_with(ask.path, std::to_string(value)).total() <= room; };
  Foreseen seen{ask.path, ask.value, trainer_->planned_with(ask.path, ask.value), room, ask.high};
  if (ask.high > 0 && !fits(ask.high)) {
    int64_t low = 0, high = ask.high;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    seen.largest = std::max<int64_t>(1, low);
  }
  snapshot_.foreseen = seen;
}

std::string Runner::checkpoint_path(int64_t step, const std::string& folder) const {
  char file[64];
  std::snprintf(file, sizeof file, "/step-%09lld.safetensors", static_cast<long long>(step));
  return folder + file;
}

// Returns why it could not be written; "" = it was.
std::string Runner::write_checkpoint(int64_t step, const std::string& folder) {
  std::string why;
  try {
    fs::create_directories(folder);
    const WatchWrites watch([this](int64_t done, int64_t total) {
      snapshot_.saving.done = done;
      snapshot_.saving.total = total;
      publish(done == total);
    });
    trainer_->save(checkpoint_path(step, folder));
  } catch (const std::bad_alloc&) {  // a copy that the host has no room for must not end training
    why = "out of memory";
  } catch (const Error& error) {  // nor must a full disk
    why = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    why = error.what();
  }
  snapshot_.saving = {};
  return why;
}

// The last state of a run is worth another place where the disk of the store is full. Returns its path; "" = there is none.
std::string Runner::rescue_checkpoint(int64_t step) {
  for (const std::string& rescue : rescue_folders()) try {
      ensure_rescue_folder(rescue);
      const std::string folder = rescued_checkpoints(rescue, run_id_);
      if (write_checkpoint(step, folder).empty()) return checkpoint_path(step, folder);
    } catch (const Error&) {  // the next one
    }
  tidy_rescue_folders();
  return "";
}

// `last`: of a run that ends, so that no later one makes up for it.
void Runner::checkpoint(const char* kind, bool last) {
  if (!recorder_.writer()) return;
  trainer_->drain();  // here, since a loss that turns out not to be finite ends the run, and a full disk below does not
  const int64_t step = trainer_->state().step;
  std::string path = checkpoint_path(step, checkpoint_folder_);
  last_checkpoint_ = Clock::now();
  snapshot_.saving = {.step = step};
  publish(true);
  const std::string why = write_checkpoint(step, checkpoint_folder_);
  checkpoint_problem_.clear();
  if (!why.empty()) {
    recorder_.tell(step, AlertEvent{.what = "checkpoint", .text = why});
    path = last ? rescue_checkpoint(step) : "";
    checkpoint_problem_ =
        "the checkpoint of step " + std::to_string(step) + (path.empty() ? " was not written: " : " is kept in " + path + ": ") + why;
    if (path.empty()) return;
  }
  checkpoints_[step] = path;
  snapshot_.last_checkpoint_step = step;
  snapshot_.last_checkpoint_path = path;
  snapshot_.last_checkpoint_at = now_s();
  recorder_.writer()->checkpoint(step, path, static_cast<int64_t>(fs::file_size(path)), kind);
  recorder_.tell(step, CheckpointEvent{path, kind});
  // A kill right after this must find it in the store, and only then may older ones go.
  if (recorder_.writer()->flush()) prune_checkpoints();
}

// Keeps the newest ones, the first of a run that begins with it (a fork, an import), and the one nearest after the best score.
void Runner::prune_checkpoints() {
  const int64_t keep = trainer_->config().train.keep_checkpoints;
  const int64_t scored = trainer_->state().best_step;  // 0 = no step was
  const auto best = scored > 0 ? checkpoints_.lower_bound(scored) : checkpoints_.end();
  const int64_t best_step = best == checkpoints_.end() ? -1 : best->first;
  const int64_t first = checkpoints_.begin()->first;
  int64_t surplus = static_cast<int64_t>(checkpoints_.size()) - keep;
  for (auto it = checkpoints_.begin(); it != checkpoints_.end() && surplus > 0;) {
    --surplus;
    if (it->first == best_step || (it->first == first && keeps_start_)) {
      ++it;
      continue;
    }
    std::error_code ignored;
    if (is_own(it->second)) fs::remove(it->second, ignored);
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

}  // namespace comera
