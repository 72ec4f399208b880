// CoMERA's bonds while it trains: what holds them, when dead slices are cut, and when they grow back.
#include <algorithm>

#include "core/base/error.h"
#include "core/methods/comera.h"
#include "core/methods/model_size.h"
#include "core/methods/rank_grow.h"
#include "core/records/events.h"

namespace comera {

bool Comera::looks_for_cuts(int64_t step) const { return config().prune_every > 0 && step % config().prune_every == 0; }

bool Comera::holds_ranks() const {
  return !run_->params().rank_layers().empty() && (!state_.overrides.caps.empty() || config().floor_rank);
}

// The rank vectors as they are now: enforces caps and the floor, and counts.
LiveRanks Comera::look_at_ranks() {
  CHECK(!run_->underway(), "ranks are looked at while steps are under way");
  const ComeraConfig& comera = config();
  if (holds_ranks()) hold_ranks(run_->params(), run_->device(), comera.threshold, state_.overrides.caps, comera.floor_rank);
  return comera::live_ranks(run_->params(), run_->device(), comera.threshold);
}

// Looks at them between two steps.
void Comera::follow_ranks(int64_t step, bool report_all) {
  tell_ranks(step, look_at_ranks(), report_all);
  if (state_.unknown.empty()) state_.live_ranks = live_ranks_;
}

// Reports bonds whose live rank changed, or all.
void Comera::tell_ranks(int64_t step, LiveRanks now, bool report_all) {
  std::vector<RankChange> changes;
  for (size_t layer = 0; layer < now.size(); ++layer)
    for (size_t bond = 0; bond < now[layer].size(); ++bond) {
      const int64_t before = live_ranks_.empty() ? 0 : live_ranks_[layer][bond];
      if (report_all || before != now[layer][bond])
        changes.push_back({static_cast<int64_t>(layer), static_cast<int64_t>(bond), before, now[layer][bond]});
    }
  live_ranks_ = std::move(now);
  if (!changes.empty()) run_->tell_ranks(step, changes);
}

// How much the setting of this path asks for: a rank, or the entries of the model.
double Comera::asked_by(const std::string& path, const RunConfig& config, const RankOverrides& overrides) const {
  const std::string cap = "rank.cap.";
  if (!path.starts_with(cap)) return config.method.comera.train_ranks ? target_entries(config) : -1;
  const std::string bond = path.substr(cap.size());
  if (const auto found = overrides.caps.find(bond); found != overrides.caps.end()) return static_cast<double>(found->second);
  const auto& layers = run_->params().rank_layers();
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t k = 0; k < initial_ranks_[i].size(); ++k)
      if (bond == layers[i].name + "." + std::to_string(k + 1)) return static_cast<double>(initial_ranks_[i][k]);
  return 0;
}

bool Comera::target_rises(const RunConfig& config) const {
  return state_.late && state_.last_target > 0 && target_entries(config) > state_.last_target;
}

// Whether the target or a cap is another one than at the last step, in a way that may let ranks grow.
bool Comera::asks_for_ranks(const RunConfig& config, const RankOverrides& overrides) const {
  return config.method.comera.train_ranks && (target_rises(config) || overrides.caps != state_.last_caps);
}

// What the next step begins with where these settings are in force then.
Comera::Growth Comera::growth_under(const RunConfig& config, const RankOverrides& overrides) const {
  if (!asks_for_ranks(config, overrides)) return {live_ranks_};
  const auto& layers = run_->params().rank_layers();
  const std::map<std::string, int64_t>&caps = overrides.caps, &last_caps = state_.last_caps;
  const auto locked = [&](const std::string& layer) {
    const auto weight = overrides.weights.find(layer);
    return weight != overrides.weights.end() && weight->second == 0;
  };
  LiveRanks wanted = live_ranks_, limits = initial_ranks_;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (size_t bond = 0; bond < limits[i].size(); ++bond) {
      const std::string name = layers[i].name + "." + std::to_string(bond + 1);
      const auto cap = caps.find(name);
      if (cap == caps.end()) continue;
      const auto last = last_caps.find(name);
      // A bond without a cap is held by its rank at the start.
      if (cap->second > (last == last_caps.end() ? initial_ranks_[i][bond] : last->second)) {
        const int64_t useful = std::min(cap->second, std::max(initial_ranks_[i][bond], rank_limit(layers[i], bond)));
        wanted[i][bond] = std::max(wanted[i][bond], useful);
      }
      limits[i][bond] = std::min(limits[i][bond], cap->second);
    }
    if (locked(layers[i].name)) limits[i] = live_ranks_[i];
  }
  const LiveRanks by_caps = wanted;
  if (target_rises(config)) {
    const double target = target_entries(config);
    // More than all bonds have at their ranks of the start was asked for: those without a cap may grow beyond them.
    if (target > static_cast<double>(total_entries(layers, initial_ranks_)))
      for (size_t i = 0; i < layers.size(); ++i)
        for (size_t bond = 0; bond < limits[i].size(); ++bond)
          if (limits[i][bond] == initial_ranks_[i][bond] && !caps.contains(layers[i].name + "." + std::to_string(bond + 1)) &&
              !locked(layers[i].name))
            limits[i][bond] = std::max(limits[i][bond], rank_limit(layers[i], bond));
    wanted = grown_to_size(layers, std::move(wanted), limits, target);
  }
  const char* reason = by_caps == live_ranks_ ? "target" : by_caps == wanted ? "cap" : "cap and target";
  return {std::move(wanted), reason};
}

// The old model goes before the new one comes, so what is held counts as free.
std::optional<LackOfRoom> Comera::lack_of_room_for(const LiveRanks& wanted) {
  if (wanted == live_ranks_) return {};
  LiveRanks ranks = held_ranks(run_->params());
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t bond = 0; bond < ranks[i].size(); ++bond)
      if (wanted[i][bond] > live_ranks_[i][bond]) ranks[i][bond] = wanted[i][bond];
  return run_->lack_of_room([&](ParamSet& params) { set_ranks(params, ranks); });
}

void Comera::refuse_growth(int64_t step, const std::string& what, const LackOfRoom& lack) {
  refused_ = true;
  const std::pair now(step, what);
  if (std::exchange(last_refusal_, now) == now) return;  // a slider that is still dragged
  run_->tell(
      step, AlertEvent{
                .what = "memory", .text = what + ", there is no room for the ranks: " + lack.text(), .need = lack.need, .free = lack.free});
}

// The last raise first. There is none where a run goes on from a checkpoint that was written between the edit and the step:
// what was in force before is not known there.
void Comera::take_back_raise(int64_t step, const LackOfRoom& lack) {
  if (raises_.empty())
    throw Error(ErrorCode::memory, "there is no room for the ranks that grow at step " + std::to_string(step), lack.text(),
                "close other programs, or resume with a smaller target or cap: --set method.comera.target=0.3");
  const Raise raise = raises_.back();
  raises_.pop_back();
  refuse_growth(step, raise.path + " is taken back", lack);
  run_->edit(raise.back_path, raise.back);
}

// Gives entries back where the target or a cap is higher than at the last step. Not at once with the edit: what counts is
// what is in force when the step begins, so a slider that goes up and down again does nothing, and a checkpoint
// between the edit and the step is of a model that has not grown yet.
void Comera::grow_ranks(int64_t step) {
  if (asks_for_ranks(run_->config(), state_.overrides)) {
    settle();
    Growth growth = growth_under(run_->config(), state_.overrides);
    while (guards_growth_) {
      const std::optional<LackOfRoom> lack = lack_of_room_for(growth.wanted);
      if (!lack) break;
      take_back_raise(step, *lack);
      growth = growth_under(run_->config(), state_.overrides);
    }
    state_.last_caps = state_.overrides.caps;
    if (growth.wanted != live_ranks_) grow_to(step, growth);
  }
  state_.last_target = state_.late ? target_entries() : 0;
  raises_.clear();
}

void Comera::grow_to(int64_t step, const Growth& growth) {
  const ComeraConfig& comera = config();
  const auto& layers = run_->params().rank_layers();
  const LiveRanks before = live_ranks_;
  const ModelSize size_before = size();
  const BondEntries entries = plan_growth(run_->params(), run_->device(), comera.threshold, growth.wanted);
  const auto seed = static_cast<uint64_t>(run_->config().train.seed);
  run_->reshape([&](Memory& memory, Ctx& ctx) {
    apply_growth(run_->device(), memory, run_->params(), run_->optimizer(), ctx, entries, comera.threshold, seed,
                 static_cast<uint64_t>(step));
  });
  follow_ranks(step, false);
  const ModelSize size_after = size();
  Json bonds = Json::array();
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t bond = 0; bond < before[i].size(); ++bond)
      if (live_ranks_[i][bond] != before[i][bond])
        bonds.push_back({{"layer", layers[i].name}, {"bond", bond + 1}, {"from", before[i][bond]}, {"to", live_ranks_[i][bond]}});
  run_->tell(step, RegrowthEvent{growth.reason, size_before.entries, size_after.entries, size_before.held_entries, size_after.held_entries,
                                 bonds, held_ranks(run_->params())});
  run_->tell_memory(step);
}

void Comera::cut_ranks(int64_t step) {
  const BondEntries cut = plan_cut(run_->params(), run_->device(), config().threshold, config().prune_dead_share);
  if (cut.empty()) return;
  const int64_t before = size().held_entries;
  run_->reshape([&](Memory& memory, Ctx& ctx) { resize_bonds(run_->device(), memory, run_->params(), run_->optimizer(), ctx, cut); });
  const int64_t after = size().held_entries;
  run_->tell(step, TruncationEvent{before, after, held_ranks(run_->params())});
  run_->tell_memory(step);
}

}  // namespace comera
