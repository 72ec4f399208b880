// Trains one run: which batch, which learning rate, when to score; its method decides on stages and ranks. Single-threaded and
// without files or clocks that matter: given (config, data, edits by step) it computes the same numbers each time.
// The session runs it on a thread; `comera reproduce` and the tests run it directly.
//
// On a device with lag (Device::lag, L steps; the CPU has none) the results of a step are taken when step L behind it has
// been issued, so that the device is never without work. The observer is told of a step when its results are here: all of it, in the order
// of the steps and with the values it has without lag. What a method decides before step n knows the steps up to n - 1 - L, whenever
// their results were looked at (core/methods/method.h).
// Waits for all results: a score, a checkpoint, drain(), the last step, a step that is profiled or that the method waits for, and an
// edit; all steps before an edit count as known from then on (it is in the log with its step, so they do so in every repetition).
// A loss that is not finite ends the run at most L steps late; the weights are spoiled then, earlier checkpoints are not.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/prefetch.h"
#include "core/methods/method.h"
#include "core/methods/model_size.h"
#include "core/train/engine.h"
#include "core/train/forecast.h"
#include "core/train/records.h"

namespace comera {

// State of a resumed run besides tensors and the state of its method: plain data, kept as JSON in the checkpoint.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t cursor = 0;  // training examples drawn
  double best_loss = 0, best_accuracy = 0;
  int64_t best_step = 0;  // 0: not scored yet
  int64_t worse = 0;      // evaluations that were due since the best one

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

// Throws Error(config) where the steps of a run need other processes and there are none.
void check_processes(const RunConfig& config, const Communicator* others);

class Trainer : private TrainingRun {
 public:
  // `validation` may be null. Checks that data and model fit (classes, image size, vocabulary): Error(config).
  // `others`: processes that compute other parts of each batch (Engine); null: none. All make the same calls of start(), restore(), edit(),
  // guard_growth(), collect() and step(), in the same order. Throws Error(config) on all where one has other data or settings.
  // `checkpoint`: that restore() brings, so that no more memory is taken than its ranks need; "": the ranks are the config's. Throws as
  // take_ranks().
  Trainer(RunConfig config, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> validation, Device& device,
          TrainObserver& observer, Communicator* others = nullptr, const std::string& checkpoint = "");
  ~Trainer() override;

  // Calls that all processes make are told before this one makes them: those that can be made.
  using CallListener = std::function<void(const char* call, const std::string& argument, const std::string& value)>;
  void tell_calls(CallListener listener) { on_call_ = std::move(listener); }

  // Takes the memory, draws initial values, reports ranks and memory. Or instead: restore().
  void start();

  // Applies a live change before the next step; reported as event "edit". Errors as apply_edit(); nothing changes then. Paths are those
  // of settings and of the method (Method::edit, Method::request), which reports a request when it comes into force.
  void edit(const std::string& path, const std::string& value) override;
  void check_edit(const std::string& path, const std::string& value) const;  // only the errors
  // From now on a growth of parameters is compared with the free memory before any of it is taken. Not while steps are computed again:
  // they grow as they did.
  void guard_growth();
  // Of a guarded run: check_edit(), and Error(memory) where the next step would begin with sizes for which there is no room.
  void check_room(const std::string& path, const std::string& value);
  // What the run would hold with another value of a setting that replans (Live::replans); nothing changes. Errors as check_edit().
  MemoryByPurpose planned_with(const std::string& path, const std::string& value) const;
  // Whether a growth was refused since the last call; told as an event "alert", once a step and setting.
  bool take_refusal() { return engine_.method().take_refusal(); }

  bool finished() const { return state_.step >= total_steps() || stops_early(); }
  // Computes step state().step + 1 and what belongs to its boundaries (the method's decisions, scores). Throws Error(diverged) when
  // the loss is not finite, of this step or, with lag, of one before it: state().step is then the step before that one. The
  // weights are still those of that step, but not with lag, nor where parameters are updated during backward.
  void step();
  // Whether the state is at a step boundary. After step() has thrown it is only if the next batch could not be read.
  bool between_steps() const { return !in_step_; }
  void drain() override;  // waits until the observer was told of all steps; throws as step()
  // Of which the observer was told: state().step of them but for those whose results are not here yet.
  int64_t steps_told() const { return state_.step - static_cast<int64_t>(underway_.size()); }
  EvalRecord evaluate();  // on the validation set, now

  int64_t total_steps() const;
  int64_t steps_per_epoch() const;
  ModelSize size();
  const TrainState& state() const { return state_; }
  const RunConfig& config() const override { return config_; }  // with all edits
  Engine& engine() { return engine_; }
  const LiveRanks& live_ranks() const { return engine_.method().live_ranks(); }  // of the last step told
  const EvalRecord& last_eval() const { return last_eval_; }
  const StepRecord& last_step() const { return last_step_; }

  // Checkpoints (checkpoint.cpp): the whole state, so that a restored run continues bit for bit. Where this process has not all of it, all
  // call save(), or collect() in its place.
  void save(const std::string& path);
  void collect();
  // Whether all processes have the same state; false between two averages of train.sync_every, and then there is no checkpoint.
  bool averaged() const { return averaged_; }
  void restore(const std::string& path);  // instead of start()
  // Tells the observer of all ranks and the memory, as at a start.
  void report_all();
  // After restore(): what last_step() and last_eval() were, for those who show them. Computes nothing.
  void recall(const StepRecord& step, const EvalRecord& eval);

 private:
  // TrainingRun
  ParamSet& params() override { return engine_.params(); }
  Optimizer& optimizer() override { return engine_.optimizer(); }
  Device& device() override { return engine_.device(); }
  const LiveRanks& config_ranks() const override { return config_ranks_; }
  int64_t steps_issued() const override { return state_.step; }
  bool underway() const override { return !underway_.empty(); }
  void reshape(const std::function<void(Memory&, Ctx&)>& change) override {
    average();
    engine_.reshape(change);
  }
  void rewrite(const std::function<void(Ctx&)>& change) override {
    average();
    engine_.rewrite(change);
  }
  std::optional<LackOfRoom> lack_of_room(const std::function<void(ParamSet&)>& resize) override;
  void tell_event(int64_t step, const char* kind, const Json& body) override { observer_.on_event(step, kind, body); }
  void tell_ranks(int64_t step, const std::vector<RankChange>& changes) override { observer_.on_ranks(step, changes); }
  void tell_memory(int64_t step) override { observer_.on_memory(step, engine_.memory().now()); }

  bool stops_early() const { return config_.train.patience > 0 && state_.worse >= config_.train.patience; }
  StepScalars scalars_for(int64_t step) const;
  // Settings of the optimizer that are in force only after its states and the plan of a step have followed: with the next step, whatever
  // edits came before it. A checkpoint in between is of the states as they are.
  MethodConfig method_wanted(const RunConfig& config) const;
  void change_method(int64_t step);
  void restore_method(const Json& metadata, const std::string& path);
  void take_results();
  void collect(size_t may_stay);
  bool waits_for_itself(int64_t step) const;
  bool scores(int64_t step) const;
  void evaluate_step(int64_t step);
  void restart_prefetch();
  void tell_call(const char* call, const std::string& argument = "", const std::string& value = "");
  void meet_others();
  void average();  // where processes have other weights
  bool averages_after(int64_t step) const;
  std::string first_bad_tensor();
  BatchOptions batch_options(bool training) const;

  RunConfig config_;
  std::shared_ptr<const Dataset> train_, validation_;
  TrainObserver& observer_;
  Communicator* const others_;
  CallListener on_call_;
  LiveRanks config_ranks_;
  Engine engine_;
  TrainState state_;
  std::vector<std::string> label_names_;  // of the checkpoint that was restored, for data without such
  bool in_step_ = false;                  // from the first change of a step to the last
  bool stepping_ = false;                 // inside step(), where all processes do the same
  bool method_changes_ = false;           // before the next step
  bool averaged_ = true;
  std::unique_ptr<Prefetcher> prefetcher_;
  // Steps that were issued and not told yet, the oldest first.
  struct Underway {
    StepRecord record;   // but for what comes with the results
    double begin = 0;    // ms
    int64_t cursor = 0;  // before the step
  };
  std::deque<Underway> underway_;
  EvalRecord last_eval_;
  StepRecord last_step_;
  Batch score_batch_;
};

}  // namespace comera
