#include "core/methods/comera.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/methods/model_size.h"
#include "core/methods/rank_canonical.h"
#include "core/methods/rank_control.h"
#include "core/records/events.h"

namespace comera {

std::unique_ptr<Method> TTWeights::make_method(const RunConfig& config, ParamSet& params) const {
  return std::make_unique<Comera>(config.method.comera, params);
}

void ComeraState::save(Json& json) const {
  json["late"] = late;
  json["late_at"] = late_at;
  json["late_entries"] = late_entries;
  json["pace"] = pace;
  json["late_requested"] = late_requested;
  json["early_requested"] = early_requested;
  json["left_late_at"] = left_late_at;
  json["plateau"] = plateau.to_json();
  json["caps"] = overrides.caps;
  json["weights"] = overrides.weights;
  json["last_target"] = last_target;
  json["last_caps"] = last_caps;
  if (unknown.empty()) return;  // as always without lag
  json["live_ranks"] = live_ranks;
  for (const Unknown& each : unknown) json["unknown"].push_back({{"step", each.step}, {"ce", each.ce}, {"ranks", each.ranks}});
}

ComeraState ComeraState::from_json(const Json& json) {
  ComeraState state;
  state.late = json.at("late");
  state.late_at = json.at("late_at");
  state.late_entries = json.at("late_entries");
  state.late_requested = json.at("late_requested");
  state.plateau = PlateauState::from_json(json.at("plateau"));
  for (const auto& [bond, cap] : json.at("caps").items()) state.overrides.caps[bond] = cap;
  for (const auto& [layer, weight] : json.at("weights").items()) state.overrides.weights[layer] = weight;
  state.pace = json.value("pace", state.late_entries);  // in checkpoints since the late stage has one
  // And since there is a way back from it.
  state.early_requested = json.value("early_requested", false);
  state.left_late_at = json.value("left_late_at", int64_t{0});
  // Checkpoints that were written before ranks could grow have neither: nothing counts as raised then.
  state.last_target = json.value("last_target", 0.0);
  state.last_caps = json.value("last_caps", state.overrides.caps);
  if (!json.contains("unknown")) return state;
  state.live_ranks = json.at("live_ranks").get<LiveRanks>();
  for (const Json& each : json.at("unknown")) state.unknown.push_back({each.at("step"), each.at("ce"), each.at("ranks").get<LiveRanks>()});
  return state;
}

void Comera::save(Json& state) const {
  state_.save(state);
  if (run_ && initial_ranks_ != run_->config_ranks()) state["initial_ranks"] = initial_ranks_;
}

// A run whose first weights are those of a folder may begin with smaller ranks than the config's: those of its checkpoint of step 0.
void Comera::restore(const Json& state) {
  const bool first = state.value("step", int64_t{0}) == 0;
  initial_ranks_ = first ? held_ranks(run_->params()) : run_->config_ranks();
  ComeraState read = ComeraState::from_json(state);
  const auto check = [&](const LiveRanks& ranks) {
    const bool fits = std::equal(ranks.begin(), ranks.end(), initial_ranks_.begin(), initial_ranks_.end(),
                                 [](const auto& a, const auto& b) { return a.size() == b.size(); });
    if (!fits)
      throw Error(ErrorCode::storage, "the training state of the checkpoint is damaged", "its ranks are of another model",
                  "use another checkpoint of the run");
  };
  if (const auto initial = state.find("initial_ranks"); initial != state.end()) {
    const auto ranks = initial->get<LiveRanks>();
    check(ranks);
    initial_ranks_ = ranks;
  }
  if (!read.unknown.empty()) check(read.live_ranks);
  for (const ComeraState::Unknown& each : read.unknown) check(each.ranks);
  state_ = std::move(read);
  know(run_->steps_issued() - run_->device().lag());  // of a device with more lag than this one
  apply_overrides();
}

void Comera::attach(TrainingRun& run) {
  run_ = &run;
  initial_ranks_ = held_ranks(run.params());
}

ModelSize Comera::size() const { return model_size(run_->params(), live_ranks_, held_ranks(run_->params()), run_->config().dtype()); }

// ---- live settings ---------------------------------------------------------------------------------------------

namespace {
// The edit that brings `path` back to `old`; of the ways to give the target, the one in force, since setting one ends the others.
std::pair<std::string, std::string> way_back(const ComeraConfig& comera, const std::string& path, const std::string& old) {
  const std::string target = "method.comera.target";
  if (!path.starts_with(target)) return {path, old};
  if (comera.target_mib > 0) return {target + "_mib", Json(comera.target_mib).dump()};
  if (comera.target_compression > 0) return {target + "_compression", Json(comera.target_compression).dump()};
  return {target, Json(comera.target).dump()};
}

}  // namespace

std::string Comera::edit(RunConfig& config, const std::string& path, const std::string& value) {
  const ComeraConfig before = config.method.comera;
  const double asked = asked_by(path, config, state_.overrides);
  const std::string old = apply_edit(config, state_.overrides, path, value);
  if (asked_by(path, config, state_.overrides) > asked) {
    const auto [back_path, back] = way_back(before, path, old);
    raises_.push_back({path, back_path, back});
  }
  return old;
}

void Comera::check_edit(const RunConfig& config, const std::string& path, const std::string& value) const {
  if (path == "stage") {
    if (value != "late" && value != "early")
      throw Error(ErrorCode::usage, "cannot change stage", "'" + value + "' is not a stage", "it is stage=late or stage=early");
    return;
  }
  for (const auto& [prefix, wants_bond] : {std::pair<const char*, bool>{"rank.cap.", true}, {"rank.weight.", false}}) {
    if (!path.starts_with(prefix)) continue;
    const std::string rest = path.substr(std::string(prefix).size());
    std::vector<std::string> names;
    for (const RankLayer& layer : run_->params().rank_layers()) {
      if (!wants_bond) names.push_back(layer.name);
      for (size_t bond = 1; wants_bond && bond <= layer.ranks.size(); ++bond) names.push_back(layer.name + "." + std::to_string(bond));
    }
    if (std::find(names.begin(), names.end(), rest) == names.end()) {
      const std::string near = nearest_name(rest, names);
      throw Error(ErrorCode::usage, "cannot change " + path,
                  "this model has no such " + std::string(wants_bond ? "bond" : "tensorised layer"),
                  near.empty() ? "" : "did you mean '" + std::string(prefix) + near + "'?");
    }
  }
  RunConfig changed = config;
  RankOverrides overrides = state_.overrides;
  apply_edit(changed, overrides, path, value);
}

// Now, not after the next step: a run restored from a checkpoint of this moment does it here too.
void Comera::after_edit() {
  apply_overrides();
  follow_ranks(run_->steps_issued(), false);
}

bool Comera::request(const std::string& path, const std::string& value) {
  if (path != "stage") return false;
  const bool late = value == "late";
  bool& other = late ? state_.early_requested : state_.late_requested;
  if (state_.late != late) {
    (late ? state_.late_requested : state_.early_requested) = true;
  } else if (std::exchange(other, false)) {
    // Told, since a checkpoint may have been written in between: a run that goes on from there takes it back, too.
    run_->drain();
    run_->tell(run_->steps_issued() + 1, StageEvent{.stage = late ? "late" : "early", .reason = "command", .stays = true});
  }
  return true;
}

void Comera::check_room(const std::string& path, const std::string& value) {
  if (!guards_growth_ || path == "stage") return;
  run_->drain();
  RunConfig changed = run_->config();
  RankOverrides overrides = state_.overrides;
  apply_edit(changed, overrides, path, value);
  // What waits for the step already is no reason against an edit that adds nothing to it.
  if (asked_by(path, changed, overrides) <= asked_by(path, run_->config(), state_.overrides)) return;
  const std::optional<LackOfRoom> lack = lack_of_room_for(growth_under(changed, overrides).wanted);
  if (!lack) return;
  refuse_growth(run_->steps_issued(), path + " stays as it is", *lack);
  throw Error(ErrorCode::memory, "cannot change " + path, "there is no room for the ranks: " + lack->text(),
              "close other programs, or raise it by less");
}

void Comera::apply_overrides() {
  const auto& layers = run_->params().rank_layers();
  std::vector<double> weights;
  for (const RankLayer& layer : layers) {
    const auto found = state_.overrides.weights.find(layer.name);
    weights.push_back(found == state_.overrides.weights.end() ? 1.0 : found->second);
  }
  objective_.set_layer_weights(run_->device(), weights);
}

// ---- stages ----------------------------------------------------------------------------------------------------

void Comera::before_step(int64_t step) {
  if (state_.early_requested) leave_late(step);
  if (!state_.late) {
    const int64_t by_count = config().late_after + 1;  // the first late step
    if (state_.late_requested)
      enter_late(step, "command");
    else if (config().late_after > 0 && step >= by_count && by_count >= state_.left_late_at)
      enter_late(step, "steps");
    else if (config().late_on_plateau > 0 && state_.plateau.reached(config().late_on_plateau))
      enter_late(step, "plateau");
  }
  grow_ranks(step);
  follow_pace();
}

void Comera::scalars(double factor, StepScalars& scalars) const {
  const ComeraConfig& comera = config();
  double& rank_rate = scalars.learning_rate[static_cast<int>(ParamGroup::rank)];
  if (state_.late) {
    const double entries = live_size(), of_late = run_->config().train.lr_rank_late;
    if (of_late > 0) rank_rate = of_late * factor;
    if (comera.hold_at_target && entries <= target_entries()) rank_rate = 0;
    scalars.pause_rank_push = comera.late_halving > 0 && entries <= state_.pace ? 1 : 0;
  }
  scalars.threshold = comera.threshold;
  scalars.pruning = comera.train_ranks ? 1 : 0;
  scalars.late = state_.late ? 1 : 0;
  scalars.rank_weight = comera.rank_weight;
  scalars.late_loss_weight = comera.late_loss_weight;
  scalars.late_weight = comera.late_weight;
  scalars.loss_target = comera.loss_target;
  scalars.size_target = state_.late ? target_entries() : 0;
  scalars.paper = comera.mode == "paper" ? 1 : 0;
  scalars.selective = comera.mode == "selective" ? 1 : 0;
  scalars.gamma = comera.gamma;
  scalars.beta = comera.beta;
  scalars.late_w1 = comera.w1;
  scalars.late_w2 = comera.w2;
}

void Comera::after_step(int64_t step, const StepResults& results, const std::vector<double>& mail) {
  tell_ranks(step, holds_ranks() ? look_at_ranks() : comera::live_ranks(run_->params(), mail, config().threshold), false);
  if (looks_for_cuts(step)) cut_ranks(step);
  state_.unknown.push_back({step, results.ce, live_ranks_});
}

void Comera::know(int64_t step) {
  for (; !state_.unknown.empty() && state_.unknown.front().step <= step; state_.unknown.pop_front()) {
    state_.plateau.update(state_.unknown.front().ce);
    state_.live_ranks = std::move(state_.unknown.front().ranks);
  }
}

void Comera::settle() {
  run_->drain();
  know(run_->steps_issued());
}

double Comera::live_size() const {
  double entries = 0;
  for (size_t i = 0; i < state_.live_ranks.size(); ++i)
    entries += static_cast<double>(live_entries(run_->params().rank_layers()[i], state_.live_ranks[i]));
  return entries;
}

double Comera::target_entries(const RunConfig& config) const {
  const ComeraConfig& comera = config.method.comera;
  const double bytes = static_cast<double>(size_of(config.dtype()));
  if (comera.target_mib > 0) return comera.target_mib * 1024 * 1024 / bytes;
  if (comera.target_compression > 0) {
    double dense = 0;
    for (const RankLayer& layer : run_->params().rank_layers()) dense += static_cast<double>(layer.dense_entries());
    return dense / comera.target_compression;
  }
  return comera.target * state_.late_entries;
}

void Comera::enter_late(int64_t step, const char* reason) {
  settle();
  state_.late = true;
  state_.late_at = step;
  state_.late_requested = false;
  state_.late_entries = state_.pace = size().entries;
  const bool canonical = config().late_canonical && config().train_ranks;
  if (canonical) {
    run_->rewrite([&](Ctx& ctx) { make_canonical(run_->params(), run_->optimizer(), run_->device(), ctx, config().threshold); });
    follow_ranks(step, false);
  }
  run_->tell(step, StageEvent{"late", reason, state_.late_entries, target_entries(), canonical});
}

// What the loss did in the late stage says nothing of a plateau of the early one.
void Comera::leave_late(int64_t step) {
  settle();
  state_.late = state_.early_requested = false;
  state_.left_late_at = step;
  state_.plateau = {};
  run_->tell(step, StageEvent{.stage = "early", .reason = "command", .entries = size().entries});
}

// What has grown back may stay as long as the target allows.
void Comera::follow_pace() {
  if (!state_.late) return;
  const int64_t halving = config().late_halving;
  // Without one it is the present size, from which a pace that is set later begins.
  state_.pace = halving > 0 ? std::max(target_entries(), state_.pace * std::exp2(-1.0 / static_cast<double>(halving))) : live_size();
}

}  // namespace comera
