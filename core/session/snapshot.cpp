#include "core/session/snapshot.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/train/trainer.h"

namespace comera {

const char* name_of(Phase phase) {
  static constexpr const char* kNames[] = {"idle",     "preparing", "running",     "pausing", "paused",  "stopping",
                                           "finished", "stopped",   "interrupted", "failed",  "diverged"};
  return kNames[static_cast<size_t>(phase)];
}

Phase phase_of(const std::string& status) {
  for (int i = 0; i <= static_cast<int>(Phase::diverged); ++i)
    if (status == name_of(static_cast<Phase>(i))) return static_cast<Phase>(i);
  return Phase::idle;
}

LayerRanks layer_ranks(const RankLayer& layer, std::vector<int64_t> live, std::vector<int64_t> held, std::vector<int64_t> initial,
                       const RankOverrides& overrides) {
  LayerRanks out{layer.name, std::move(live), std::move(held), std::move(initial), layer.in_modes, layer.out_modes};
  for (size_t bond = 1; bond <= layer.ranks.size(); ++bond) {
    const auto cap = overrides.caps.find(layer.name + "." + std::to_string(bond));
    out.caps.push_back(cap == overrides.caps.end() ? 0 : cap->second);
  }
  if (const auto weight = overrides.weights.find(layer.name); weight != overrides.weights.end()) out.weight = weight->second;
  return out;
}

void Records::add(int64_t step, const NamedValues& values, double time) {
  if (std::isfinite(time) && (times.steps.empty() || step > times.steps.back())) {  // a score comes later than its step
    times.steps.push_back(step);
    times.values.push_back(time);
  }
  for (const auto& [name, value] : values) {
    Series& series = metrics[name];
    series.steps.push_back(step);
    series.values.push_back(value);
  }
}

void Records::LeftOut::add(int64_t from, int64_t to) {
  first = any() ? std::min(first, from) : from;
  last = std::max(last, to);
}

size_t Records::points() const {
  size_t sum = times.steps.size();
  for (const auto& [name, series] : metrics) sum += series.steps.size();
  return sum;
}

void Records::leave_out_metrics() {
  for (const auto& [name, series] : metrics)
    if (!series.steps.empty()) left_out.add(series.steps.front(), series.steps.back());
  metrics.clear();
  times = {};
}

void Records::append(Records more) {
  if (more.left_out.any()) left_out.add(more.left_out.first, more.left_out.last);
  const auto join = [](auto& rows, auto& others) {
    if (rows.empty())
      rows = std::move(others);
    else
      rows.insert(rows.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  };
  const auto join_series = [&](Series& series, Series& other) {
    join(series.steps, other.steps);
    join(series.values, other.values);
  };
  for (auto& [name, series] : more.metrics) join_series(metrics[name], series);
  join_series(times, more.times);
  join(ranks, more.ranks);
  join(memory, more.memory);
  join(events, more.events);
}

}  // namespace comera
