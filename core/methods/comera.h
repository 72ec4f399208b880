// CoMERA as a method (METHODS.md 1.4 to 1.10): when ranks are pruned, when the late stage drives size and loss to their targets, what
// holds a bond, when dead slices are cut, and when bonds grow back.
//
// What is decided before step n (the switch by plateau; the rank rate and the pace of the late stage) knows the steps up to n - 1 - L.
// Waits for all results: a step that looks for dead slices, and while a cap or a floor holds ranks every step, since what it holds
// must be seen before the next one. The switch of the stage and a growth wait too, and all steps before them count as known from then on
// (they are in the log with their step, so they do so in every repetition).
//
// Free memory must not change the results of a run. So a growth that finds no room is not left out silently: the edit that asks
// for it is refused, or an edit of the same step takes it back where it was made already. Every repetition reads from the log that
// nothing grew, however much memory it has.
#pragma once
#include <deque>
#include <map>
#include <utility>

#include "core/methods/method.h"
#include "core/methods/plateau.h"
#include "core/methods/rank_objective.h"

namespace comera {

// State of a resumed run: plain data, kept as JSON in the checkpoint.
struct ComeraState {
  bool late = false;
  int64_t late_at = 0;                                   // first late step
  double late_entries = 0;                               // S when the late stage began
  double pace = 0;                                       // late stage: the size that its pace has come to, entries; S0 at last
  bool late_requested = false, early_requested = false;  // by command, not yet in force
  int64_t left_late_at = 0;                              // first step of the early stage that was gone back to; 0 = none was
  PlateauState plateau;                                  // of the early stage and what follows it
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

  void save(Json& json) const;  // adds its values
  static ComeraState from_json(const Json& json);
};

class Comera final : public Method {
 public:
  Comera(const ComeraConfig& config, ParamSet& params) : objective_(params, config.mode == "paper") {}

  int64_t table_bytes() const override { return objective_.table_bytes(); }
  void place_tables(Device& device, char* base) override { objective_.place(device, base); }
  Tensor mail() const override { return objective_.ranks(); }
  bool weighs() const override { return !objective_.empty(); }
  void objective(Ctx& ctx) override { objective_.forward(ctx); }
  void penalise(Ctx& ctx) override { objective_.backward(ctx); }

  void attach(TrainingRun& run) override;
  void before_step(int64_t step) override;
  void scalars(double factor, StepScalars& scalars) const override;
  void after_step(int64_t step, const StepResults& results, const std::vector<double>& mail) override;
  void know(int64_t step) override;
  bool waits_for(int64_t step) const override { return looks_for_cuts(step) || holds_ranks(); }
  void report(int64_t step) override { follow_ranks(step, true); }

  // Paths of its own: rank.cap.LAYER.BOND, rank.weight.LAYER and `stage`, a request: late, or early again. From the next step on
  // the loss and the weights of that stage are minimised; what ranks lost meanwhile stays lost. By itself the late stage begins
  // once more only by a count that was not over yet, or a plateau that comes after it. A request that is taken back before the step
  // changes nothing. Where the size target of the late stage or a cap is higher than at the last step, the next one begins
  // with bonds that get entries back.
  std::string edit(RunConfig& config, const std::string& path, const std::string& value) override;
  void check_edit(const RunConfig& config, const std::string& path, const std::string& value) const override;
  void after_edit() override;
  bool request(const std::string& path, const std::string& value) override;
  void guard_growth() override { guards_growth_ = true; }
  void check_room(const std::string& path, const std::string& value) override;
  bool take_refusal() override { return std::exchange(refused_, false); }

  void save(Json& state) const override;
  void restore(const Json& state) override;

  bool late() const override { return state_.late; }
  const LiveRanks& live_ranks() const override { return live_ranks_; }
  const LiveRanks& initial_ranks() const override { return initial_ranks_; }
  const RankOverrides& overrides() const override { return state_.overrides; }
  const ComeraState& state() const { return state_; }
  RankObjective& rank_objective() { return objective_; }

 private:
  struct Growth {
    LiveRanks wanted;  // with which the next step begins; live_ranks_ = none grow
    const char* reason = "";
  };
  // An edit since the last step that asked for more than before, and the one that brings back what was in force then.
  struct Raise {
    std::string path, back_path, back;
  };

  const ComeraConfig& config() const { return run_->config().method.comera; }
  void settle();
  ModelSize size() const;

  // comera.cpp: stages
  double target_entries(const RunConfig& config) const;
  double target_entries() const { return target_entries(run_->config()); }
  double live_size() const;  // S, entries
  void follow_pace();
  void enter_late(int64_t step, const char* reason);
  void leave_late(int64_t step);
  void apply_overrides();

  // comera_ranks.cpp: what holds, cuts and grows bonds
  bool looks_for_cuts(int64_t step) const;
  bool holds_ranks() const;
  LiveRanks look_at_ranks();
  void follow_ranks(int64_t step, bool report_all);
  void tell_ranks(int64_t step, LiveRanks now, bool report_all);
  void cut_ranks(int64_t step);
  double asked_by(const std::string& path, const RunConfig& config, const RankOverrides& overrides) const;
  bool target_rises(const RunConfig& config) const;
  bool asks_for_ranks(const RunConfig& config, const RankOverrides& overrides) const;
  Growth growth_under(const RunConfig& config, const RankOverrides& overrides) const;
  std::optional<LackOfRoom> lack_of_room_for(const LiveRanks& wanted);
  void refuse_growth(int64_t step, const std::string& what, const LackOfRoom& lack);
  void take_back_raise(int64_t step, const LackOfRoom& lack);
  void grow_ranks(int64_t step);
  void grow_to(int64_t step, const Growth& growth);

  RankObjective objective_;
  TrainingRun* run_ = nullptr;
  ComeraState state_;
  LiveRanks live_ranks_, initial_ranks_;
  std::vector<Raise> raises_;  // in the order in which they were made
  bool guards_growth_ = false, refused_ = false;
  std::pair<int64_t, std::string> last_refusal_;  // step and text
};

}  // namespace comera
