// The trainer's thread of a session: prepares the run (new, resumed or forked: runner_begin.cpp), takes commands at step
// boundaries, writes checkpoints (runner.cpp), and keeps the snapshot fresh (runner_publish.cpp).
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/records/events.h"
#include "core/session/recorder.h"
#include "core/session/run_sampler.h"
#include "core/session/session.h"
#include "core/session/step_profiler.h"
#include "core/session/step_rate_limit.h"
#include "core/session/stored_run.h"
#include "core/session/with_others.h"

namespace comera {

class Runner {
 public:
  Runner(Session& session, SessionStart start);
  ~Runner();
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point begin);

  void prepare();
  void begin_new();
  void begin_with_folder();
  void begin_resume();
  void use_moved_data(StoredRun& source) const;
  void begin_fork();
  std::optional<int64_t> processes() const;  // for events; null: one
  std::optional<std::string> link() const;   // the same
  StartEvent event_of_folder() const;
  StartEvent first_event(const std::string& parent, int64_t fork_step) const;
  RunStart record_of(const RunConfig& config, const std::string& parent, int64_t fork_step) const;
  std::string set_aside(int64_t from);
  void begin_record(const std::string& parent, int64_t fork_step);
  void use_run(const std::string& id, bool stored);
  bool is_own(const std::string& checkpoint) const;
  void hand_over(const std::string& checkpoint, const std::string& to_run, bool own);
  void keep_tokenizer(const std::string& checkpoints);
  bool takes_stop();
  void rebuild(const StoredRun& source, int64_t step, bool alone = false);
  std::vector<ScheduledChange> given_changes(int64_t next) const;
  void check_changes();
  void check_goes_on(const StoredRun& source) const;
  void make_changes();
  void extend(int64_t done);
  void enter_in_log(const ScheduledChange& change);
  void recall(const std::string& run, int64_t step);
  // `source`: the run whose steps are made again; its data must be the same. `alone`: other processes have no part in it.
  // `checkpoint`: that is restored then; "": none.
  void make_trainer(const RunConfig& config, const std::string& checkpoint = "", const StoredRun* source = nullptr, bool alone = false);
  void check_room();
  void check_room_to_begin(const std::string& parent, int64_t fork_step);
  void tell_lack_of_memory();
  void keep_last_step();
  void loop();
  void train_step();
  void write_due_checkpoint();
  void foresee(const ForeseeCommand& ask);
  void edit(const EditCommand& edit);
  void inspect(const InspectCommand& what);
  void look_at_core();
  const DeviceRates& device_rates();
  void show_speed();
  void obey(const std::pair<Ticket, Command>& command);
  std::string checkpoint_path(int64_t step, const std::string& folder) const;
  void checkpoint(const char* kind, bool last = false);
  std::string write_checkpoint(int64_t step, const std::string& folder);
  std::string rescue_checkpoint(int64_t step);
  void prune_checkpoints();
  void end(Phase phase);
  void end_badly(Phase phase);
  double wait_s() const;
  void pause();
  bool pauses_after_refusal();
  void publish(bool force);
  bool knows_size() const;
  void update_summary();

  Session& session_;
  SessionStart start_;
  std::unique_ptr<OthersInThreads> threads_;
  std::unique_ptr<Device> device_;
  Recorder recorder_;
  RunData data_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<ScheduledChange> scheduled_;
  Snapshot snapshot_;
  std::string run_id_, checkpoint_folder_;
  std::map<int64_t, std::string> checkpoints_;     // step -> path
  std::string checkpoint_problem_;                 // of the last checkpoint; "" = it was written
  bool shares_checkpoints_ = false;                // another store lists those of before, too
  bool keeps_start_ = false;                       // its first weights are those of its first checkpoint, which stays
  std::vector<std::pair<Ticket, Command>> later_;  // came while the past was computed again, and are not of it
  bool paused_ = false, stop_ = false, stop_checkpoint_ = true;
  std::string due_checkpoint_;  // its kind; "": none
  int64_t run_until_ = -1;      // pause again at this step
  bool to_event_ = false;       // ... or when something happens
  Clock::time_point began_, last_publish_, last_checkpoint_;
  int64_t inspected_layer_ = -1, inspected_bond_ = 0, inspected_core_ = 0;  // what to show the values of; from 1, 0 = nothing
  Clock::time_point last_look_;                                             // at the core
  StepProfiler profiler_;
  std::optional<DeviceRates> rates_;  // measured when they are first asked for
  RunSampler sampler_;
  StepRateLimit rate_limit_;
};

}  // namespace comera
