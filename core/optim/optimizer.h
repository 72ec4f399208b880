// An optimizer: the states of all parameters in one block of memory, and the rule that makes each parameter's step from
// them (rule.h). Its states follow when ranks are cut or a run is saved, by what they declare (state.h).
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/layers/grads.h"
#include "core/optim/refresh_schedule.h"
#include "core/optim/rule.h"

namespace comera {

enum class Refreshed : unsigned char { in_backward, after_backward };

class Optimizer : public GradTaker {
 public:
  explicit Optimizer(std::unique_ptr<Rule> rule) : rule_(std::move(rule)) {}
  // Declares the states of `param`: once a parameter before allocate, and again after its shape has changed. A frozen one has none. Says
  // in which shape its gradients are summed, where they are.
  void attach(Param& param);
  // Gives every state its shape and dtype without an address, for dry runs before allocate().
  void describe(DType dtype) { place(nullptr, dtype); }
  MemoryByPurpose planned(DType dtype) const;
  // Takes exactly planned() bytes; every state begins at 0.
  void allocate(Device& device, Memory& memory, DType dtype);
  void release();
  // Takes the place of one with other settings, which has its memory: its states follow by name (state_follow.h), and its memory goes
  // before any is taken here. Attached to the same parameters already.
  void take_over(Optimizer& before, Device& device, Memory& memory, Ctx& ctx, std::deque<Param>& params, DType dtype);
  // The update program: w from w, grad and states, of all parameters that have a gradient, in as few calls of ops as the rule allows.
  void update(Ctx& ctx, std::deque<Param>& params);
  void update(Ctx& ctx, Param& param);
  // The step of one parameter during backward, whose gradient is not kept.
  void take(Ctx& ctx, Param& param, const Tensor& grad) override;
  void add_projected(Ctx& ctx, Param& param, const Tensor& grad) override;
  bool by_entries(const Param& param) const { return rule_->by_entries(param); }  // Rule::by_entries
  // Between grad and update program, never captured. `step` is 1-based. The first refreshes all, so it has projections too;
  // later ones refresh those that are due (refresh_schedule.h), each alone: its temporaries go before the next one's. A run that
  // takes over weights without the projection must refresh by hand, or these weights stand still until their turn.
  bool refresh_due(uint64_t step, Refreshed when = Refreshed::after_backward);
  void refresh(Ctx& ctx, std::deque<Param>& params, uint64_t step);
  // Where gradients are not kept as they are, the caller refreshes a projection from its gradient before it calls take(), or from that of
  // the first part of a batch before add_projected().
  bool refreshes_in_backward() const;
  static Refreshed refreshed(const Param& param);
  bool refresh_due(const Param& param, uint64_t step);
  int64_t refresh_gap() const { return gap_; }  // steps from one to the next; 0: there are none
  void refresh(Ctx& ctx, Param& param, const Tensor& grad, uint64_t step);
  void refresh_from_part(Ctx& ctx, Param& param, const Tensor& sum_over_examples, uint64_t step);
  // Dry, in a plan: every kind of refresh of every parameter, so none of them needs more memory.
  void plan_refresh(Ctx& ctx, std::deque<Param>& params);
  // Every tensor by its key in checkpoints ("m"; codes "m8" with "absmax_m"): their bytes are the whole state.
  void states(Param& param, const std::function<void(const std::string& key, Tensor& value)>& visit);
  void each_state(const Param& param, const std::function<void(const Tensor& value)>& visit) const;
  void reread() { times_.clear(); }  // states were written through each_state()
  // When a parameter's shape changes: its states as numbers on the host before release(), so that the caller can slice them
  // by their axes. restore() takes them by name after attach() and allocate() with the new shape, in the format that the
  // new size asks for. None may be missing but those that start anew.
  std::vector<StateNumbers> capture(Device& device, Ctx& ctx, Param& param);
  void restore(Device& device, Ctx& ctx, Param& param, const std::vector<StateNumbers>& numbers);

 private:
  void step(Ctx& ctx, Param& param, const Tensor& grad);
  void step_rows(Ctx& ctx, Param& param, const Tensor& grad);
  std::vector<ParamState>& states_of(const Param& param);
  void place(char* base, DType dtype);
  RefreshSchedule schedule() const { return {static_cast<int64_t>(refreshed_.size()), gap_, rule_->refreshes_together()}; }
  int64_t times_gap(const Param& param);
  Tensor scratch(const ParamState& state, Buffer& buffer) const;  // for its numbers, counted as workspace while `buffer` lives

  const std::unique_ptr<Rule> rule_;
  std::vector<std::vector<ParamState>> states_;  // in order of attach
  std::vector<ParamState> of_rows_;              // of the table whose rows are stepped
  std::unordered_map<const Param*, size_t> index_;
  std::unordered_map<const Param*, int64_t> refreshed_;  // by number, in order of attach
  int64_t gap_ = 1;
  std::unordered_map<const Param*, int64_t> times_;  // the gap of matrices whose refreshes become rarer; read again after a refresh
  Device* device_ = nullptr;
  Memory* memory_ = nullptr;
  Buffer buffer_;
};

}  // namespace comera
