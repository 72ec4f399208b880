#include "core/methods/rank_control.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/base/error.h"

namespace comera {
namespace {

// The rank vectors of a model on the host, bond by bond.
class RankValues {
 public:
  RankValues(const ParamSet& params, Device& device) : params_(params) {
    if (!params.rank_layers().empty()) values_ = to_host(device, params.ranks());
  }
  RankValues(const ParamSet& params, std::vector<double> values) : params_(params), values_(std::move(values)) {}
  std::vector<double>& values() { return values_; }

  // body(layer index, bond index, entries of the bond)
  template <class Body>
  void each_bond(const Body& body) {
    size_t begin = 0;
    for (size_t layer = 0; layer < params_.rank_layers().size(); ++layer) {
      const std::vector<Param*>& ranks = params_.rank_layers()[layer].ranks;
      for (size_t bond = 0; bond < ranks.size(); ++bond) {
        const size_t count = static_cast<size_t>(ranks[bond]->count());
        CHECK(begin + count <= values_.size(), "rank vectors do not fill their run");
        body(layer, bond, std::span<double>(values_).subspan(begin, count));
        begin += count;
      }
    }
  }

 private:
  const ParamSet& params_;
  std::vector<double> values_;
};

int64_t count_live(std::span<const double> entries, double threshold) {
  return std::count_if(entries.begin(), entries.end(), [&](double value) { return value > threshold; });
}

LiveRanks count_bonds(RankValues ranks, size_t layers, double threshold) {
  LiveRanks live(layers);
  ranks.each_bond([&](size_t layer, size_t, std::span<double> entries) { live[layer].push_back(count_live(entries, threshold)); });
  return live;
}

}  // namespace

LiveRanks live_ranks(const ParamSet& params, Device& device, double threshold) {
  return count_bonds({params, device}, params.rank_layers().size(), threshold);
}

LiveRanks live_ranks(const ParamSet& params, const std::vector<double>& values, double threshold) {
  return count_bonds({params, values}, params.rank_layers().size(), threshold);
}

int64_t live_entries(const RankLayer& layer, const std::vector<int64_t>& live) {
  int64_t entries = 0;
  for (size_t k = 0; k < layer.mode_sizes.size(); ++k) {
    const int64_t before = k == 0 ? 1 : live[k - 1], after = k < live.size() ? live[k] : 1;
    if (before == 0 || after == 0) return 0;
    entries += before * layer.mode_sizes[k] * after;
  }
  return entries;
}

bool hold_ranks(ParamSet& params, Device& device, double threshold, const std::map<std::string, int64_t>& caps, bool floor_rank) {
  // Above the threshold by enough to survive rounding to float; so small that the bond passes next to nothing on.
  const double floor_value = threshold * (1 + 1e-3);
  bool changed = false;
  size_t caps_met = 0;
  RankValues ranks(params, device);
  ranks.each_bond([&](size_t layer, size_t bond, std::span<double> entries) {
    const auto cap = caps.find(params.rank_layers()[layer].name + "." + std::to_string(bond + 1));
    if (cap != caps.end()) {
      ++caps_met;
      const int64_t excess = count_live(entries, threshold) - std::max<int64_t>(cap->second, 0);
      if (excess > 0) {
        std::vector<size_t> order(entries.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return entries[a] > entries[b]; });
        for (size_t i = static_cast<size_t>(std::max<int64_t>(cap->second, 0)); i < order.size(); ++i)
          if (entries[order[i]] > threshold) entries[order[i]] = 0;
        changed = true;
      }
    }
    if (floor_rank && count_live(entries, threshold) == 0) {
      *std::max_element(entries.begin(), entries.end()) = floor_value;
      changed = true;
    }
  });
  for (const auto& [bond, cap] : caps) {
    if (caps_met == caps.size()) break;
    const bool known = std::any_of(params.rank_layers().begin(), params.rank_layers().end(), [&bond = bond](const RankLayer& layer) {
      for (size_t index = 1; index <= layer.ranks.size(); ++index)
        if (bond == layer.name + "." + std::to_string(index)) return true;
      return false;
    });
    if (!known)
      throw Error(ErrorCode::not_found, "no bond '" + bond + "' to cap at " + std::to_string(cap), "",
                  "name it LAYER.BOND, bonds count from 1");
  }
  if (changed) from_host(device, params.ranks(), ranks.values());
  return changed;
}

BondEntries plan_cut(const ParamSet& params, Device& device, double threshold, double prune_dead_share) {
  BondEntries cut;
  if (params.rank_layers().empty()) return cut;
  const std::vector<double> values = to_host(device, params.ranks());
  bool due = false;
  size_t begin = 0;
  for (const RankLayer& layer : params.rank_layers()) {
    cut.emplace_back();
    for (const Param* ranks : layer.ranks) {
      const double* entries = values.data() + begin;
      begin += static_cast<size_t>(ranks->count());
      std::vector<int64_t> keep;
      for (int64_t i = 0; i < ranks->count(); ++i)
        if (entries[i] > threshold) keep.push_back(i);
      // A dead bond keeps its largest entry: the one that a floor would revive.
      if (keep.empty()) keep.push_back(std::max_element(entries, entries + ranks->count()) - entries);
      const double gone = static_cast<double>(ranks->count()) - static_cast<double>(keep.size());
      due = due || (gone > 0 && gone >= prune_dead_share * static_cast<double>(ranks->count()));
      cut.back().push_back(std::move(keep));
    }
  }
  if (!due) cut.clear();
  return cut;
}

}  // namespace comera
