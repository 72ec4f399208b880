// The trainer's thread of a session: prepares the run (new, resumed or forked), takes commands at step boundaries,
// writes checkpoints, and keeps the snapshot fresh.
#pragma once
#include <chrono>
#include <map>
#include <memory>

#include "core/session/recorder.h"
#include "core/session/session.h"

namespace comera {

class RunReader;

// One change of a stored run that has to be made again when its steps are computed again.
struct ScheduledChange {
  int64_t step = 0;          // the first step that saw it
  bool late_stage = false;   // a manual stage switch, else an edit
  std::string path, value;
};

// The live changes of a stored run after `after_step`, in order.
std::vector<ScheduledChange> stored_changes(const RunReader& reader, const std::string& run, int64_t after_step);
// Makes the changes that belong before the trainer's next step.
void apply_changes(Trainer& trainer, std::vector<ScheduledChange>& changes);
// Training and validation data of a config.
struct RunData {
  std::shared_ptr<const Dataset> train, validation;
};
RunData open_run_data(const RunConfig& config);

class Runner {
 public:
  Runner(Session& session, SessionStart start);
  ~Runner();
  void run();

 private:
  void prepare();
  void begin_new(RunConfig config, const std::string& parent, int64_t fork_step);
  void begin_resume();
  void begin_fork();
  void make_trainer(const RunConfig& config);
  void loop();
  void obey(const std::pair<Ticket, Command>& command);
  void checkpoint(const char* kind);
  void prune_checkpoints();
  void end(Phase phase);
  void publish(bool force);
  std::string checkpoint_path(int64_t step) const;

  Session& session_;
  SessionStart start_;
  std::unique_ptr<Device> device_;
  Recorder recorder_{nullptr};
  RunData data_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<ScheduledChange> scheduled_;
  Snapshot snapshot_;
  std::string run_id_, checkpoint_folder_;
  std::map<int64_t, std::string> checkpoints_;  // step -> path
  int64_t best_saved_step_ = -1;
  bool paused_ = false, stop_ = false, stop_checkpoint_ = true;
  int64_t run_until_ = -1;                      // pause again at this step
  std::chrono::steady_clock::time_point began_, last_publish_, last_checkpoint_;
  std::vector<std::vector<int64_t>> initial_ranks_;
};

}  // namespace comera
