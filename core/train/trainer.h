// Trains one run: which batch, which learning rate, which stage, when to score, when to cut ranks. Single-threaded and
// without files or clocks that matter: given (config, data, edits by step) it computes the same numbers each time.
// The session runs it on a thread; `comera reproduce` and the tests run it directly.
#pragma once
#include <memory>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/prefetch.h"
#include "core/methods/plateau.h"
#include "core/train/engine.h"
#include "core/train/model_size.h"

namespace comera {

// What a resumed run needs besides tensors: plain data, kept as JSON in the checkpoint.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t cursor = 0;  // training examples drawn
  bool late = false;
  int64_t late_at = 0;          // first late step
  double late_entries = 0;      // S when the late stage began
  double pace = 0;              // late stage: the size that its pace has come to, entries; S0 at last
  bool late_requested = false;  // by command, not yet in force
  PlateauState plateau;
  double best_loss = 0, best_accuracy = 0;
  int64_t best_step = 0;  // 0: not scored yet
  RankOverrides overrides;
  // In force at the last step: what a raised one is raised from.
  double last_target = 0;  // S0; 0 in the early stage
  std::map<std::string, int64_t> last_caps;

  Json to_json() const;
  static TrainState from_json(const Json& json);
};

struct StepRecord {
  int64_t step = 0;
  StepResults results;
  double accuracy = 0;
  double learning_rate[kParamGroups] = {};
  double step_ms = 0;
  StepTimes times;
  double data_ms = 0;  // of step_ms: waited for the batch
  int64_t tokens = 0, examples = 0;
  double epoch = 0;
  double target_entries = 0;  // S0 in force; 0 in the early stage
};

struct EvalRecord {
  int64_t step = 0;
  double loss = 0, accuracy = 0;
  int64_t examples = 0;
};

struct RankChange {
  int64_t layer = 0, bond = 0;  // bond counts from 0
  int64_t from = 0, to = 0;
};

// Told of everything that happens, on the trainer's thread. Values are deterministic but for times.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepRecord& record) {}
  virtual void on_eval(const EvalRecord& record) {}
  virtual void on_ranks(int64_t step, const std::vector<RankChange>& changes) {}
  virtual void on_memory(int64_t step, const MemoryByPurpose& now) {}
  virtual void on_event(int64_t step, const char* kind, const Json& body) {}
};

class Trainer {
 public:
  // `validation` may be null. Checks that data and model fit (classes, image size, vocabulary): Error(config).
  Trainer(RunConfig config, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> validation, Device& device,
          TrainObserver& observer);
  ~Trainer();

  // Takes the memory, draws initial values, reports ranks and memory. Or instead: restore().
  void start();

  // Applies a live change before the next step; reported as event "edit". Errors as apply_edit(); nothing changes then.
  // Where the size target of the late stage or a cap is higher than at the last step, the next one begins with bonds
  // that get entries back; reported as event "regrowth".
  void edit(const std::string& path, const std::string& value);
  void check_edit(const std::string& path, const std::string& value);  // only the errors
  // Enters the late stage before the next step.
  void request_late();

  bool finished() const { return state_.step >= total_steps(); }
  // Computes step state().step + 1 and what belongs to its boundaries (growth; ranks, cut, score). Throws Error(diverged) when
  // the loss is not finite; the weights are then still those before the step.
  void step();
  EvalRecord evaluate();  // on the validation set, now

  int64_t total_steps() const;
  int64_t steps_per_epoch() const;
  ModelSize size();
  const TrainState& state() const { return state_; }
  const RunConfig& config() const { return config_; }  // with all edits
  Engine& engine() { return engine_; }
  const LiveRanks& live_ranks() const { return live_ranks_; }  // [layer][bond]
  const EvalRecord& last_eval() const { return last_eval_; }
  const StepRecord& last_step() const { return last_step_; }

  // Checkpoints (checkpoint.cpp): the whole state, so that a restored run continues bit for bit.
  void save(const std::string& path);
  void restore(const std::string& path);  // instead of start()
  // Tells the observer of all ranks and the memory, as at a start.
  void report_all();
  // After restore(): what last_step() and last_eval() were, for those who show them. Computes nothing.
  void recall(const StepRecord& step, const EvalRecord& eval);

 private:
  StepScalars scalars_for(int64_t step) const;
  double target_entries() const;
  double live_size() const;  // S, entries
  void follow_pace();
  void enter_late(int64_t step, const char* reason);
  void follow_ranks(int64_t step, bool report_all);
  void grow_ranks(int64_t step);
  void cut_ranks(int64_t step);
  void apply_overrides();
  void restart_prefetch();
  std::string first_bad_tensor();
  BatchOptions batch_options(bool training) const;

  RunConfig config_;
  std::shared_ptr<const Dataset> train_, validation_;
  TrainObserver& observer_;
  Engine engine_;
  TrainState state_;
  std::unique_ptr<Prefetcher> prefetcher_;
  LiveRanks live_ranks_, initial_ranks_;
  EvalRecord last_eval_;
  StepRecord last_step_;
  Batch score_batch_;
};

}  // namespace comera
