// Trains one run: which batch, which learning rate, which stage, when to score, when to cut ranks. Single-threaded and
// without files or clocks that matter: given (config, data, edits by step) it computes the same numbers each time.
// The session runs it on a thread; `comera reproduce` and the tests run it directly.
//
// On a device with lag (Device::lag, L steps; the CPU has none) the results of a step are taken when step L behind it has
// been issued, so that the device is never without work. Two rules:
//   told      The observer is told of a step, of its ranks and its cut when its results are here: all of it, in the order
//             of the steps and with the values it has without lag.
//   decided   What is decided before step n (the switch by plateau; the rank rate and the pace of the late stage) knows the
//             steps up to n - 1 - L, whenever their results were looked at. So a decision depends on the step alone: a
//             pause, a score or a checkpoint in between changes nothing, and a checkpoint keeps what is not known yet.
// Waits for all results: a score, a checkpoint, drain(), the last step, a step that is profiled or looks for dead slices,
// and while a cap or a floor holds ranks every step, since what it holds must be seen before the next one. An edit, the
// switch of the stage and a growth wait too, and all steps before them count as known from then on (they are in the log
// with their step, so they do so in every repetition).
// A loss that is not finite ends the run at most L steps late; the weights are spoiled then, earlier checkpoints are not.
//
// What the machine can give is no part of what a run computes. So a growth that finds no room is not left out silently: the
// edit that asks for it is refused, or is taken back by an edit of the same step where it was made already, and the log alone
// tells every repetition that nothing grew, whatever memory it has.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/prefetch.h"
#include "core/methods/plateau.h"
#include "core/train/engine.h"
#include "core/train/forecast.h"
#include "core/train/model_size.h"
#include "core/train/records.h"

namespace comera {

// What a resumed run needs besides tensors: plain data, kept as JSON in the checkpoint.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t cursor = 0;  // training examples drawn
  bool late = false;
  int64_t late_at = 0;                                   // first late step
  double late_entries = 0;                               // S when the late stage began
  double pace = 0;                                       // late stage: the size that its pace has come to, entries; S0 at last
  bool late_requested = false, early_requested = false;  // by command, not yet in force
  int64_t left_late_at = 0;                              // first step of the early stage that was gone back to; 0 = none was
  PlateauState plateau;                                  // of the early stage and what follows it
  double best_loss = 0, best_accuracy = 0;
  int64_t best_step = 0;  // 0: not scored yet
  RankOverrides overrides;
  // Where results come late: the last steps that no decision knows yet, and the ranks that decisions know. Without them all
  // is known, and live_ranks are those of the model.
  struct Unknown {
    int64_t step = 0;
    double ce = 0;
    LiveRanks ranks;
  };
  std::deque<Unknown> unknown;
  LiveRanks live_ranks;
  // In force at the last step: what a raised one is raised from.
  double last_target = 0;  // S0; 0 in the early stage
  std::map<std::string, int64_t> last_caps;

  Json to_json() const;
  static TrainState from_json(const Json& json);
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
  // The stage is a setting of a run, too: path "stage", value "late" or "early"; reported as event "stage" by the step from
  // which it is in force.
  void edit(const std::string& path, const std::string& value);
  void check_edit(const std::string& path, const std::string& value);  // only the errors
  // From now on a growth is compared with what is free before anything of it is taken. Not while steps are computed again:
  // they grow as they did.
  void guard_growth() { guards_growth_ = true; }
  // Of a guarded run: check_edit(), and Error(memory) where the next step would begin with ranks for which there is no room.
  void check_growth(const std::string& path, const std::string& value);
  // Whether a growth was refused since the last call; told as an event "alert", once a step and setting.
  bool take_refusal() { return std::exchange(refused_, false); }
  // Enters the late stage before the next step, or goes back to the early one: from then on the loss and the weights of that
  // are minimised, and what ranks lost meanwhile stays lost. By itself the late stage begins once more only by a count that
  // was not over yet, or a plateau that comes after it. A request that is taken back before the step changes nothing.
  void request_late();
  void request_early();

  bool finished() const { return state_.step >= total_steps(); }
  // Computes step state().step + 1 and what belongs to its boundaries (growth; ranks, cut, score). Throws Error(diverged) when
  // the loss is not finite, of this step or, with lag, of one before it: state().step is then the step before that one. The
  // weights are still those of that step, but not with lag.
  void step();
  void drain();  // waits until the observer was told of all steps; throws as step()
  // Of which the observer was told: state().step of them but for those whose results are not here yet.
  int64_t steps_told() const { return state_.step - static_cast<int64_t>(underway_.size()); }
  EvalRecord evaluate();  // on the validation set, now

  int64_t total_steps() const;
  int64_t steps_per_epoch() const;
  ModelSize size();
  const TrainState& state() const { return state_; }
  const RunConfig& config() const { return config_; }  // with all edits
  Engine& engine() { return engine_; }
  const LiveRanks& live_ranks() const { return live_ranks_; }  // [layer][bond], of the last step told
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
  struct Growth {
    LiveRanks wanted;  // with which the next step begins; live_ranks_ = none grow
    const char* reason = "";
  };
  // An edit since the last step that asked for more than before, and the one that brings back what was in force then.
  struct Raise {
    std::string path, back_path, back;
  };

  StepScalars scalars_for(int64_t step) const;
  double target_entries(const RunConfig& config) const;
  double target_entries() const { return target_entries(config_); }
  double live_size() const;  // S, entries
  void follow_pace();
  void request_stage(bool late);
  void enter_late(int64_t step, const char* reason);
  void leave_late(int64_t step);
  void take_results();
  void collect(size_t may_stay);
  void decide_by(int64_t step);
  void settle();
  bool waits_for_itself(int64_t step) const;
  bool looks_for_cuts(int64_t step) const;
  bool scores(int64_t step) const;
  bool holds_ranks() const;
  LiveRanks look_at_ranks();
  void follow_ranks(int64_t step, bool report_all);
  void tell_ranks(int64_t step, LiveRanks now, bool report_all);
  double asked_by(const std::string& path, const RunConfig& config, const RankOverrides& overrides) const;
  bool target_rises(const RunConfig& config) const;
  bool asks_for_ranks(const RunConfig& config, const RankOverrides& overrides) const;
  Growth growth_under(const RunConfig& config, const RankOverrides& overrides) const;
  std::optional<LackOfRoom> lack_of_room_for(const LiveRanks& wanted);
  void refuse_growth(int64_t step, const std::string& what, const LackOfRoom& lack);
  void take_back_raise(int64_t step, const LackOfRoom& lack);
  void grow_ranks(int64_t step);
  void grow_to(int64_t step, const Growth& growth);
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
  // Steps that were issued and not told yet, the oldest first.
  struct Underway {
    StepRecord record;   // but for what comes with the results
    double begin = 0;    // ms
    int64_t cursor = 0;  // before the step
  };
  std::deque<Underway> underway_;
  LiveRanks live_ranks_, initial_ranks_;
  EvalRecord last_eval_;
  StepRecord last_step_;
  Batch score_batch_;
  std::vector<Raise> raises_;  // in the order in which they were made
  bool guards_growth_ = false, refused_ = false;
  std::pair<int64_t, std::string> last_refusal_;  // step, and what was said of it
};

}  // namespace comera
