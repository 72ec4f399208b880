// A stored run, also one still training, moved through step by step. Everything recorded is read once, so a move costs
// some searches and no query: a slider can drag it. Thread: one at a time.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/rising.h"
#include "core/session/folder_start.h"
#include "core/session/run_rows.h"
#include "core/session/run_source.h"

namespace comera {

class Device;
class Engine;

class Replay final : public RunSource {
 public:
  // At the last stored step. `run`: id, unique beginning, or name. Throws Error(not_found | storage).
  // `progress` is told now and then which share of the metrics is read, from 0 to 1; what it throws ends the reading.
  Replay(const std::string& store, const std::string& run, const std::function<void(double share)>& progress = {});
  ~Replay() override;

  const RunRow& row() const { return row_; }
  const FolderStart& folder() const { return folder_; }                           // that its first weights are from
  const Rising<int64_t>& steps() const { return steps_; }                         // with metrics; may be empty
  const std::vector<EventRow>& events() const { return events_; }                 // by seq
  const std::vector<CheckpointRow>& checkpoints() const { return checkpoints_; }  // by step; their files may be gone
  // As it was at the start of the run; the built-in one when the stored one cannot be read.
  const RunConfig& config() const { return config_; }
  // Why not; "" = it was read. Then ranks and sizes are not known, curves and events are.
  const std::string& config_problem() const { return config_problem_; }
  int64_t step() const { return step_; }
  void seek(int64_t step);  // to the last stored step at or before it, or the first
  // Reads what was stored since; true when there was something new. A cursor at the end stays at the end. Where the run
  // was resumed from an earlier step meanwhile, what came after that step is forgotten first, as the store forgot it.
  bool refresh();
  // The same in two parts, so that another thread can do the reading: rows that were read after place() are appended. The
  // cursor stays. Only where continues() says that what is known is still what the store has before them: not where a resume
  // took steps back, where a change that waited for its step was given up, or where the last step had been stored in part.
  RunPlace place() const;
  bool continues(const RunRows& rows) const;
  void append(RunRows rows);

  // The state after step(): what a session showed then, but for times of phases and what was never stored. Its phase
  // is the run's status at the last step and `running` before it.
  std::shared_ptr<const Snapshot> latest() const override;
  Records drain() override;
  // The same but for metrics and times, which count as told then: whoever keeps them all takes metrics() and times(), whose
  // values are shared, not copied.
  Records drain_rest();
  using Column = MetricColumn;
  const std::map<std::string, Column>& metrics() const { return metrics_; }
  const Column& times() const { return times_; }  // when each step was done

 private:
  struct Track {  // values in force from a step on
    std::vector<std::pair<int64_t, int64_t>> changes;
    size_t drained = 0;  // a boundary's changes may be stored after its metrics, so steps do not tell
  };
  struct Edit {  // of a cap, a weight or the limit of the speed
    int64_t step = 0;
    std::string path, value;
  };
  struct Turn {  // what an event says of the state from its step on
    int64_t step = 0;
    std::optional<bool> late;
    std::optional<std::vector<std::vector<int64_t>>> held;
  };
  void read_config();
  void take_back(int64_t after_step);
  void take_event(EventRow event);
  // Parts of latest().
  void show_values(Snapshot& s) const;
  void show_best(Snapshot& s) const;
  void show_ranks(Snapshot& s) const;
  void show_memory(Snapshot& s) const;
  void show_speed(Snapshot& s) const;
  void apply_edits(RunConfig& config, RankOverrides& overrides) const;  // of edits_, those in effect at step()
  double trained_ms(size_t steps) const;                                // of the first ones with a time
  double value(const char* metric, int64_t* at = nullptr) const;        // last at or before step(); 0 and at = 0 when none

  RunReader reader_;
  RunRow row_;
  FolderStart folder_;
  RunConfig config_;
  std::string config_problem_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Engine> engine_;                 // described, not allocated; null for a run without a config that can be read
  std::shared_ptr<const StepMemory> step_memory_;  // as the engine plans it
  std::map<std::string, Column> metrics_;
  std::map<std::string, size_t> drained_points_;  // of each metric: a score is stored after its step
  Rising<int64_t> steps_;
  std::vector<double> blocks_ms_;  // sum of step_ms before each block of kBlock steps: a move adds up the rest of one
  Column times_;
  size_t drained_times_ = 0;
  std::map<std::pair<std::string, int64_t>, Track> ranks_;  // (layer, bond from 1)
  std::map<std::string, Track> memory_;                     // purpose
  int64_t rank_step_ = -1, memory_step_ = -1;               // of the last change
  std::vector<EventRow> events_;
  std::vector<Turn> turns_;        // out of events_, in their order: parsed once, not with every move
  RankOverrides first_overrides_;  // of a fork: what its parent had
  std::vector<Edit> edits_;        // those that the state of a step depends on
  std::vector<CheckpointRow> checkpoints_;
  int64_t step_ = 0, drained_events_ = -1, last_seq_ = -1;
};

}  // namespace comera
