#include "core/session/snapshot.h"

#include <cmath>
#include <iterator>

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

void Records::append(Records more) {
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
