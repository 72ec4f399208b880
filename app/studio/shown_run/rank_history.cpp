#include "app/studio/shown_run/rank_history.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/figure/tt_layout.h"

namespace comera::studio {
namespace {

double share_left(const LayerRanks& layer) {
  const auto sum = [](const std::vector<int64_t>& ranks) { return std::accumulate(ranks.begin(), ranks.end(), 0.0); };
  const double initial = sum(layer.initial);
  return initial > 0 ? sum(layer.live) / initial : 1;
}

}  // namespace

std::vector<size_t> ordered_layers(const std::vector<LayerRanks>& layers, RankOrder order) {
  std::vector<size_t> out(layers.size());
  std::iota(out.begin(), out.end(), size_t{0});
  if (order == RankOrder::depth) return out;
  std::vector<double> key;  // smallest first
  for (const LayerRanks& layer : layers) {
    const bool size = order == RankOrder::size;
    key.push_back(!size ? share_left(layer) : has_shape(layer) ? -static_cast<double>(layer_entries(layer, layer.live)) : 0);
  }
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
  return out;
}

std::vector<double> rank_steps(const RunView& view, double low, double high, size_t most) {
  std::vector<double> out{low};
  size_t changes = 0;
  for (const auto& [bond, ranks] : view.bond_ranks) {
    const Rising<double>& x = ranks.x();
    const auto begin = std::upper_bound(x.begin(), x.end(), low), end = std::lower_bound(begin, x.end(), high);
    changes += static_cast<size_t>(end - begin);
    if (changes <= 8 * most) out.insert(out.end(), begin, end);
  }
  out.push_back(high);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (changes <= 8 * most && out.size() <= most) return out;
  out.clear();
  for (size_t i = 0; i < most; ++i) out.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(most - 1));
  return out;
}

std::vector<ModuleSize> module_sizes(const RunView& view, const std::vector<LayerRanks>& layers, const std::vector<double>& steps,
                                     size_t most) {
  const bool single = static_cast<size_t>(std::count_if(layers.begin(), layers.end(), has_shape)) <= most;
  std::vector<ModuleSize> out;
  const auto module = [&](const std::string& name) -> ModuleSize& {
    const auto found = std::find_if(out.begin(), out.end(), [&](const ModuleSize& one) { return one.name == name; });
    if (found != out.end()) return *found;
    if (out.size() + 1 < most || (single && out.size() < most)) {
      out.push_back({name, std::vector<double>(steps.size(), 0)});
    } else if (out.size() < most) {
      out.push_back({"others", std::vector<double>(steps.size(), 0)});
    }
    return out.back();
  };
  for (const LayerRanks& layer : layers) {
    if (!has_shape(layer)) continue;
    std::vector<const Curve*> bonds;
    for (size_t bond = 0; bond < layer.initial.size(); ++bond) {
      const auto found = view.bond_ranks.find({layer.name, static_cast<int64_t>(bond) + 1});
      bonds.push_back(found == view.bond_ranks.end() ? nullptr : &found->second);
    }
    std::vector<size_t> next(bonds.size(), 0);  // next point of each bond
    std::vector<int64_t> ranks = layer.initial;
    std::vector<double>& entries = module(single ? layer.name : group_of(layer.name)).entries;
    double size = static_cast<double>(layer_entries(layer, ranks));
    for (size_t i = 0; i < steps.size(); ++i) {
      bool changed = false;
      for (size_t bond = 0; bond < bonds.size(); ++bond)
        for (; bonds[bond] && next[bond] < bonds[bond]->size() && bonds[bond]->x()[next[bond]] <= steps[i]; ++next[bond]) {
          ranks[bond] = static_cast<int64_t>(bonds[bond]->y()[next[bond]]);
          changed = true;
        }
      if (changed) size = static_cast<double>(layer_entries(layer, ranks));
      entries[i] += size;
    }
  }
  return out;
}

}  // namespace comera::studio
