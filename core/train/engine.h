// One model under one method on one device: its programs, its memory, its step. Nothing here knows about runs, files
// or threads. A step is two programs, `grad` (forward, losses, backward) and `update`; between them a projected optimizer may
// refresh; what that needs is planned, too. A third program scores. The programs share one piece of memory: they never overlap. Batch, step
// scalars and cleared results are uploaded before a program; batches of every kind fill the same buffers, whose sizes are the config's, so
// a captured program serves them all.
//
// Results come back through a ring of slots (Device::mailbox): behind the update the device copies StepResults and the mail of
// the method, a few numbers, into the next slot, and the host takes them some steps later.
//   waits for the device   take(), until the step that it hands out is done, not for those issued behind it; step();
//                          score(); reshape(); to_host() and whatever else downloads; submit() while a profile
//                          is taken.
//   does not               submit(): uploads are copied away, programs are issued, nothing is read. So up to Device::lag()
//                          steps are under way while the host prepares the next one.
// On a device without lag submit() is done when it returns; it looks at the loss before the update, and where that is not
// finite nothing is updated. With lag, and for parameters that are updated during backward, the check comes too late: the
// update is made, and take() shows the loss later.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/methods/method.h"
#include "core/models/model.h"
#include "core/ops/device.h"
#include "core/optim/optimizer.h"
#include "core/tasks/task.h"
#include "core/train/records.h"
#include "core/train/shared_gradients.h"
#include "core/train/step_program.h"

namespace comera {

class Engine {
 public:
  // Builds the model and plans its memory; takes none yet.
  // `others`: processes that compute the other parts of each batch; null: none. Process p computes parts p, p + P, ..., and all have the
  // bits of one process that computes all parts. Throws Error(config) where they cannot.
  Engine(const RunConfig& config, Device& device, Communicator* others = nullptr);
  // Of parameters of other sizes, which `resize` gives them.
  Engine(const RunConfig& config, Device& device, const std::function<void(ParamSet&)>& resize, Communicator* others = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;

  // What allocate() will take, exactly.
  MemoryByPurpose planned() const;
  // The same with parameters of other sizes, which `resize` gives to a model of its own: nothing is taken, nothing changes here.
  MemoryByPurpose planned_with(const std::function<void(ParamSet&)>& resize) const;
  const Work& step_work() const { return step_work_; }  // of one training step
  const Arena& step_arena() const { return grad_.arena(); }
  StepMemory step_memory() const;

  // Takes the memory and draws the initial values. Throws Error(memory), and then holds nothing.
  void allocate();

  // Issues one training step. `batch` must fit the capacities of the config; Error(config) where an id or a label does not
  // fit the model, and then nothing was issued. At most kSlots steps are under way.
  void submit(const Batch& batch, const StepScalars& scalars) {
    submit([&]() -> const Batch& { return batch; }, scalars);
  }
  // A batch in parts, each looked at when it comes: `next` gives those of this process one after another.
  void submit(const std::function<const Batch&()>& next, const StepScalars& scalars);
  // The results of the oldest step under way, and where they are asked for the values that the method sent with them (Method::mail).
  StepResults take(std::vector<double>* mail = nullptr);
  int64_t underway() const { return submitted_ - taken_; }
  // A step and its results, with none under way.
  StepResults step(const Batch& batch, const StepScalars& scalars);
  // Before allocate(): room for the outputs of every token, for score().
  void keep_token_outputs();
  // The loss of one batch without a step (ce, examples, correct), with the same errors; row s of `outputs` (S, O) is written when asked.
  // Of a language model these are the rows of all tokens (T, O), which keep_token_outputs() must have asked for.
  StepResults score(const Batch& batch, const StepScalars& scalars, std::vector<double>* outputs = nullptr);

  // Parameters of other sizes (TrainingRun): step memory and programs go, `change` takes the new tensors, everything is planned again and
  // takes its memory. Not while steps are under way.
  void reshape(const std::function<void(Memory&, Ctx&)>& change);
  // Other live settings of the method (Live::replans) before `step`: states of the optimizer follow (Optimizer::take_over), and so do the
  // factors of LoRA with their states (factor_ranks.h). As reshape().
  void change_method(const MethodConfig& method, int64_t step);
  MemoryByPurpose planned_with(const MethodConfig& method) const;  // with these settings; nothing changes here
  // Other values of the same sizes. Not while steps are under way.
  void rewrite(const std::function<void(Ctx&)>& change);

  ParamSet& params() { return params_; }
  const ParamSet& params() const { return params_; }
  const WeightForms& forms() const { return forms_; }
  Optimizer& optimizer() { return *optimizer_; }
  Method& method() { return *method_; }
  const Method& method() const { return *method_; }
  Device& device() { return device_; }
  const Memory& memory() const { return memory_; }
  const StepTimes& times() const { return times_; }               // of the last step issued; 0 where it was not waited for
  const SharedStep& shared_step() const { return shared_step_; }  // of the last step issued
  int64_t tokens() const { return tokens_; }                      // of the last step issued, in all parts
  // What this process sends to others by the plan, in bytes: in step `step`, and in the mean of all.
  int64_t planned_traffic(int64_t step) const;
  int64_t planned_traffic() const;
  int64_t bytes_to_average() const;  // that this process sends in average()
  // Parameters of which some blocks are right in the process alone that trains them (Method::blocks_of), with their states, become right in
  // all. All processes call it; false: there are none, and nothing is sent.
  bool has_blocks() const { return !blocks_.empty(); }
  void collect_blocks();
  // Whether each process makes steps with its own part alone (train.sync_every). average() then: all processes go on with the mean of their
  // weights, and of states of the optimizer that have a weight's shape; other states are those of process 0 (METHODS.md 24).
  bool is_local() const { return others_ && config_.train.sync_every > 1; }
  void average();
  // Whether Param::grad holds the gradient of the last step: not before the first, nor after the memory was taken anew.
  bool has_gradients() const { return has_gradients_; }
  // Every op of step() is told to it from now on, steps are not replayed meanwhile; null = none, and then nothing is
  // spent on it. Not owned.
  void profile(OpProfile* profile) { profile_ = profile; }
  bool profiled() const { return profile_ != nullptr; }
  // false: steps and scores are computed op by op also where the device captures, for comparisons.
  void replay(bool allowed) { replay_ = allowed; }
  // Programs captured so far: three at most (a step's two, and the scores') after each plan. Live changes add none.
  // Linked devices have one more for each kind of round.
  int64_t captures() const;
  const RunConfig& config() const { return config_; }
  const Task& task() const { return *task_; }
  const BatchLayout& layout() const { return layout_; }  // of its batches

 private:
  static constexpr int kSlots = 4;  // of the ring; more than any lag

  Ctx context(Arena& arena, bool training);
  void plan();
  void refresh_with(const std::function<void(Ctx&)>& calls);
  void take_step_memory();
  void give_step_memory();
  void check(const Batch& batch) const;
  void upload(const Batch& batch, const StepScalars& scalars, bool with_results = true);
  int64_t parts() const { return config_.train.micro_batches; }
  bool reduces() const { return parts() > 1 || config_.train.clip_norm > 0; }
  void check_shared() const;
  void place_shared();
  std::vector<SharedGradients::Gradient> shared_gradients() const;
  // The sum goes on while the backward pass does: where all parts are computed at the same time, by linked devices.
  bool sums_in_backward() const { return shared_ && shared_->linked() && shared_->rounds() == 1 && !is_local(); }
  bool is_block(const Param& param) const;
  void clear_gradients_but_blocks();
  bool follows_parts() const { return parts() > 1 && config_.train.sync_every == 1 && !params_.states().empty(); }
  void begin_states();
  void begin_part(const std::function<const Batch&()>& next, StepScalars scalars, int64_t part, bool first);
  void run_part(bool op_by_op);
  bool any_profiles() const;
  void share_parts(const std::function<const Batch&()>& next, const StepScalars& scalars, bool op_by_op);
  void take_own_part(const std::function<const Batch&()>& next, const StepScalars& scalars, bool op_by_op);
  void combine_results(int64_t slot);
  enum class Together : unsigned char { mean, of_first };
  void each_averaged(const std::function<void(const Tensor&, Together)>& visit) const;
  void plan_rounds();
  int64_t add_round(int64_t round);
  int64_t run_linked(StepProgram& program, int64_t& sent_by_calls, bool op_by_op);
  bool sums_on_device() const { return shared_ && (shared_->linked() || computes_on_host(device_)); }
  void add_results(const StepResults& part, StepResults& sum);
  std::vector<StepProgram*> programs();
  void place_tables();
  void grad_program(Arena& arena);
  void reduce_program(Arena& arena);
  void update_program(Arena& arena);
  void clear_gradients();
  void score_program(Arena& arena);
  void place_data();
  double loss_of(const StepResults& results) const;
  int64_t mail_bytes() const { return method_->mail() ? method_->mail().bytes() : 0; }

  RunConfig config_;
  Device& device_;
  Communicator* const others_;
  Memory memory_;
  // Their arenas outlive the layers, whose handles they lent.
  StepProgram grad_, reduce_, update_, score_, refresh_;
  struct Round {
    Round(Device& device, std::function<void(Arena&)> calls) : program(device, std::move(calls)) {}
    StepProgram program;
    int64_t sent_bytes = 0;  // by its calls
  };
  std::vector<std::unique_ptr<Round>> rounds_;  // of linked devices behind backward: the first, one for all between, the last
  int64_t sent_in_backward_ = 0;                // by the calls of grad_
  bool times_messages_ = false;                 // in backward, since a process is profiled
  double messages_ms_ = 0;                      // waited for them in the pass under way; where they are timed
  Arena refreshing_;                            // of the refreshes that are due in a step
  class PassTaker;
  void refresh_from_part(Param& param, const Tensor& grad);
  bool has_new_projection(const Param& param, int64_t step) const;
  int64_t bytes_of_projection(const Param& param) const;
  uint64_t refreshed_step_ = 0;  // the step whose backward pass refreshes projections; 0: none does
  double refresh_ms_ = 0;        // all refreshes of the last step issued
  ParamSet params_;
  std::unique_ptr<Stash> stash_;
  std::unique_ptr<Model> model_;
  const std::unique_ptr<Task> task_;
  const BatchLayout layout_;
  WeightForms forms_;  // of its matrices
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Method> method_;
  Work step_work_;
  MemoryByPurpose step_plan_;  // of the memory that the programs share
  StepTimes times_;
  SharedStep shared_step_;
  std::unique_ptr<Mailbox> mailbox_;
  int64_t submitted_ = 0, taken_ = 0;      // steps; step number n is in slot n mod kSlots
  std::unique_ptr<WorkClock> clock_;       // of profiles, once there was one
  double turn_ms_ = 0;                     // when the backward pass of the last step began
  double forward_ms_ = 0, waited_ms_ = 0;  // of the step under way; for batches
  double others_ms_ = 0;                   // StepTimes::others of the step under way
  int64_t tokens_ = 0;
  OpProfile* profile_ = nullptr;
  bool allocated_ = false, has_gradients_ = false, replay_ = true;

  Buffer step_memory_, workspace_memory_, data_memory_, table_memory_, shared_memory_, second_memory_;
  int64_t data_bytes_ = 0, table_bytes_ = 0, workspace_bytes_ = 0, second_bytes_ = 0;
  std::optional<SharedGradients> shared_;  // with others
  std::vector<Param*> blocks_;             // whose gradients are not shared
  std::vector<char> combined_[kSlots];     // of local steps: what take() hands out of each slot
  int64_t part_ = 0;                       // of the batch, which is computed
  std::vector<char> host_memory_;          // of shared_, where the device has memory of its own
  DeviceBatch batch_;
  Tensor scalars_, results_, outputs_, one_;  // one_: (1), a gradient of logits for results of other processes
  // Of batches in parts, where the run has states: each part follows its batch from the same states, and the step makes their mean.
  Tensor state_begin_, state_sum_;
  bool keeps_token_outputs_ = false;
  std::map<std::string, std::vector<double>> wide_;  // staging of reals for f64 runs
  std::vector<int32_t> counted_, counted_places_;    // staging of a sparse field
  std::vector<Device::Part> uploads_;
};

}  // namespace comera
