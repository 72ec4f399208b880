#include "core/methods/rank_grow.h"

#include <algorithm>
#include <cmath>

#include "core/base/draw.h"
#include "core/base/error.h"

namespace comera {
namespace {

int64_t old_ones(const std::vector<int64_t>& entries) { return std::find(entries.begin(), entries.end(), kNewEntry) - entries.begin(); }
bool grows(const std::vector<int64_t>& entries) { return entries.back() == kNewEntry; }

// D of the new entries of a bond that holds `entries` now.
double new_factor(std::vector<double> entries, double threshold) {
  std::erase_if(entries, [&](double value) { return !(value > threshold); });
  std::sort(entries.begin(), entries.end());
  const size_t half = entries.size() / 2;
  const double median = entries.empty() ? 1 : entries.size() % 2 == 1 ? entries[half] : (entries[half - 1] + entries[half]) / 2;
  return std::max(median, 2 * threshold);
}

// Fills the new columns of a core, which lie behind the first `old_columns`, in all rows. `old_rows` are the rows that
// were there before.
void fill_columns(Device& device, const Param& core, int64_t old_rows, int64_t old_columns, const Philox& random) {
  const int64_t columns = core.shape[-1], middle = core.count() / (core.shape[0] * columns), added = columns - old_columns;
  std::vector<double> values = to_host(device, core.value);
  double squares = 0;
  for (int64_t row = 0; row < old_rows * middle; ++row)
    for (int64_t column = 0; column < old_columns; ++column) {
      const double value = values[static_cast<size_t>(row * columns + column)];
      squares += value * value;
    }
  const double scale = squares > 0 ? std::sqrt(squares / static_cast<double>(old_rows * middle * old_columns)) : core.init.scale;
  const std::vector<double> normals = draw_normals(random, static_cast<size_t>(core.shape[0] * middle * added));
  auto next = normals.begin();
  for (int64_t row = 0; row < core.shape[0] * middle; ++row)
    for (int64_t column = old_columns; column < columns; ++column) values[static_cast<size_t>(row * columns + column)] = scale * *next++;
  from_host(device, core.value, values);
}

}  // namespace

double total_entries(const std::deque<RankLayer>& layers, const LiveRanks& live) {
  double entries = 0;
  for (size_t i = 0; i < layers.size(); ++i) entries += static_cast<double>(live_entries(layers[i], live[i]));
  return entries;
}

int64_t rank_limit(const RankLayer& layer, size_t bond) {
  // No product beyond what a rank can be: it could overflow.
  const auto product = [&](size_t begin, size_t end) {
    int64_t out = 1;
    for (size_t k = begin; k < end; ++k) out = std::min<int64_t>(out * layer.mode_sizes[k], int64_t{1} << 31);
    return out;
  };
  return std::min(product(0, bond + 1), product(bond + 1, layer.mode_sizes.size()));
}

LiveRanks grown_to_size(const std::deque<RankLayer>& layers, LiveRanks live, const LiveRanks& limit, double entries) {
  CHECK(live.size() == layers.size() && limit.size() == layers.size(), "ranks of another model");
  const auto given_back = [&](double share) {
    LiveRanks out = live;
    for (size_t i = 0; i < live.size(); ++i)
      for (size_t bond = 0; bond < live[i].size(); ++bond)
        out[i][bond] += static_cast<int64_t>(share * static_cast<double>(std::max<int64_t>(0, limit[i][bond] - live[i][bond])));
    return out;
  };
  if (total_entries(layers, live) > entries) return live;
  // The size rises with the share; `low` always fits.
  double low = 0, high = 1;
  if (total_entries(layers, given_back(high)) <= entries) return given_back(high);
  for (int halvings = 0; halvings < 40; ++halvings) {
    const double share = (low + high) / 2;
    (total_entries(layers, given_back(share)) <= entries ? low : high) = share;
  }
  live = given_back(low);
  double total = total_entries(layers, live);
  for (bool added = true; added;) {
    added = false;
    for (size_t i = 0; i < live.size(); ++i)
      for (size_t bond = 0; bond < live[i].size(); ++bond) {
        if (live[i][bond] >= limit[i][bond]) continue;
        const int64_t before = live_entries(layers[i], live[i]);
        ++live[i][bond];
        const double more = total + static_cast<double>(live_entries(layers[i], live[i]) - before);
        if (more > entries) {
          --live[i][bond];
        } else {
          total = more;
          added = true;
        }
      }
  }
  return live;
}

BondEntries plan_growth(const ParamSet& params, Device& device, double threshold, const LiveRanks& wanted) {
  CHECK(wanted.size() == params.rank_layers().size(), "ranks of another model");
  BondEntries bonds;
  bool any = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const RankLayer& layer = params.rank_layers()[i];
    CHECK(wanted[i].size() == layer.ranks.size(), layer.name << ": ranks of another model");
    bonds.emplace_back();
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      const std::vector<double> values = to_host(device, layer.ranks[bond]->value);
      std::vector<int64_t> all, live;
      for (int64_t entry = 0; entry < static_cast<int64_t>(values.size()); ++entry) {
        all.push_back(entry);
        if (values[static_cast<size_t>(entry)] > threshold) live.push_back(entry);
      }
      const int64_t lacking = wanted[i][bond] - static_cast<int64_t>(live.size());
      if (lacking > 0) live.insert(live.end(), static_cast<size_t>(lacking), kNewEntry);
      any = any || lacking > 0;
      bonds.back().push_back(lacking > 0 ? std::move(live) : std::move(all));
    }
  }
  if (!any) bonds.clear();
  return bonds;
}

void apply_growth(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const BondEntries& bonds,
                  double threshold, uint64_t seed, uint64_t step) {
  if (bonds.empty()) return;
  CHECK(bonds.size() == params.rank_layers().size(), "bonds of another model");
  std::vector<std::vector<double>> factors(bonds.size());  // [layer][bond], before anything changes
  for (size_t i = 0; i < bonds.size(); ++i)
    for (const Param* ranks : params.rank_layers()[i].ranks) factors[i].push_back(new_factor(to_host(device, ranks->value), threshold));
  resize_bonds(device, memory, params, optimizer, ctx, bonds);
  for (size_t i = 0; i < bonds.size(); ++i) {
    const RankLayer& layer = params.rank_layers()[i];
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      const std::vector<int64_t>& entries = bonds[i][bond];
      if (!grows(entries)) continue;
      const Param &ranks = *layer.ranks[bond], &core = *layer.cores[bond];
      std::vector<double> values = to_host(device, ranks.value);
      std::fill(values.begin() + old_ones(entries), values.end(), factors[i][bond]);
      from_host(device, ranks.value, values);
      const int64_t old_rows = bond == 0 ? 1 : old_ones(bonds[i][bond - 1]);
      fill_columns(device, core, old_rows, old_ones(entries), {seed, static_cast<uint32_t>(step), site_of(core.name)});
    }
  }
}

}  // namespace comera
