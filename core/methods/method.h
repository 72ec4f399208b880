// Hooks of a method beyond the values of its axes (core/config/method.h): terms of the objective, decisions between two steps,
// live settings of its own, and the state that a checkpoint keeps. Most optimizers, stashes and weights need none; they use Method itself,
// whose hooks do nothing.
//
// The engine calls the hooks of a step on the device, while it plans, captures or runs its programs; the trainer those between two
// steps, on its thread. Where results come late (Device::lag, L steps; the CPU has none) there are two moments:
//   told      after_step(n) is called when the results of step n are here: in the order of the steps.
//   decided   know(n) says that what is decided from now on knows the steps up to n. So a decision depends on the step alone: a pause,
//             a score or a checkpoint in between changes nothing.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/config/config.h"
#include "core/optim/optimizer.h"
#include "core/records/sizes.h"
#include "core/tensor/memory.h"

namespace comera {

template <class Event>
Json json_of(const Event& event);

// The training run as its method sees it between two steps.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;
  virtual const RunConfig& config() const = 0;  // with all edits
  virtual ParamSet& params() = 0;
  virtual Optimizer& optimizer() = 0;
  virtual Device& device() = 0;
  virtual const LiveRanks& config_ranks() const = 0;  // of all bonds, as the config gives them
  virtual int64_t steps_issued() const = 0;
  virtual bool underway() const = 0;  // whether results of issued steps are not here yet
  virtual void drain() = 0;           // waits for all results
  // Parameters of other sizes: the programs of a step are forgotten and its memory is given back, `change` makes the new tensors, and
  // everything is planned again and takes its memory.
  virtual void reshape(const std::function<void(Memory&, Ctx&)>& change) = 0;
  // Other values of the same sizes.
  virtual void rewrite(const std::function<void(Ctx&)>& change) = 0;
  // Whether the run would lack memory with parameters of other sizes, which `resize` gives to a description of the model.
  virtual std::optional<LackOfRoom> lack_of_room(const std::function<void(ParamSet&)>& resize) = 0;
  virtual void edit(const std::string& path, const std::string& value) = 0;
  virtual void tell_event(int64_t step, const char* kind, const Json& body) = 0;
  virtual void tell_ranks(int64_t step, const std::vector<RankChange>& changes) = 0;
  virtual void tell_memory(int64_t step) = 0;
  template <class Event>
  void tell(int64_t step, const Event& event) {  // core/records/events.h
    tell_event(step, Event::kind, json_of(event));
  }
};

class Method {
 public:
  virtual ~Method() = default;

  // ---- a step on the device ----
  // Device memory beside parameters and states, for the present sizes: its bytes, and where they are (null while there is none). Placed
  // again after every change of sizes.
  virtual int64_t table_bytes() const { return 0; }
  virtual void place_tables(Device& device, char* base) {}
  // Values that are sent to the host with the results of a step; empty: none.
  virtual Tensor mail() const { return {}; }
  // Whether the loss is one term of an objective. Then objective() reads the mean loss in `results` and writes there the objective and the
  // weight of the loss's gradient (StepResults), and penalise() adds the gradients of the other terms to the parameters'.
  virtual bool weighs() const { return false; }
  virtual void objective(Ctx& ctx) {}
  virtual void penalise(Ctx& ctx) {}

  // ---- between two steps on the host ----
  virtual void attach(TrainingRun& run) {}
  virtual void before_step(int64_t step) {}
  // Scalars of the step besides seed, step and learning rates, which are set; `factor` is that of the schedule on learning rates.
  virtual void scalars(double factor, StepScalars& scalars) const {}
  // `mail`: the values sent with the results.
  virtual void after_step(int64_t step, const StepResults& results, const std::vector<double>& mail) {}
  virtual void know(int64_t step) {}
  virtual bool waits_for(int64_t step) const { return false; }  // for the results of a step, before anything else is issued
  // Whether the ops of a forward and backward pass differ between the `parts` parts of a batch (Ctx::part).
  virtual bool calls_differ(int64_t parts) const { return false; }
  // Parameters in as many equal blocks of rows: the gradient of block i is that of part i, or 0. Between two steps after which these are
  // read (every `read_every()`), processes that compute the parts need not know the blocks of others.
  virtual std::vector<Param*> blocks_of(int64_t parts) const { return {}; }
  virtual int64_t read_every() const { return 0; }
  virtual void report(int64_t step) {}  // tells of everything, as at a start

  // ---- live settings ----
  // A live change, of its own settings or those of `config`: Error(usage) as apply_edit(), and then nothing has changed. Returns the value
  // before, as JSON text.
  virtual std::string edit(RunConfig& config, const std::string& path, const std::string& value);
  virtual void check_edit(const RunConfig& config, const std::string& path, const std::string& value) const;
  virtual void after_edit() {}
  // A request takes effect with the next step and is reported then. false: `path` is a setting.
  virtual bool request(const std::string& path, const std::string& value) { return false; }
  // Of a guarded run what makes parameters grow is compared with the memory that is free before anything of it is taken; check_room()
  // throws Error(memory) where an edit asks for more than there is. take_refusal(): whether one was refused since the last call.
  virtual void guard_growth() {}
  virtual void check_room(const std::string& path, const std::string& value) {}
  virtual bool take_refusal() { return false; }

  // ---- what a checkpoint keeps ----
  virtual void save(Json& state) const {}
  // Error or nlohmann::json::exception where `state` lacks a value. Parameters have their sizes and values already.
  virtual void restore(const Json& state) {}

  // ---- what is shown ----
  virtual bool late() const { return false; }   // the stage
  virtual const LiveRanks& live_ranks() const;  // [layer][bond], of the last step told
  virtual const LiveRanks& initial_ranks() const { return live_ranks(); }
  virtual const RankOverrides& overrides() const;
};

// The method of these settings for a model that was built with them.
std::unique_ptr<Method> make_method(const RunConfig& config, ParamSet& params);

}  // namespace comera
