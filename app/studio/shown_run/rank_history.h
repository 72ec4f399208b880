// Ranks over the steps of a run: order of layers, and size by module.
#pragma once
#include <string>
#include <vector>

#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

// depth: model order; size: most live entries first; drop: largest relative loss of rank first.
enum class RankOrder { depth, size, drop };
inline constexpr int kRankOrders = 3;
// Indices of the layers in this order; ties keep the model order.
std::vector<size_t> ordered_layers(const std::vector<LayerRanks>& layers, RankOrder order);

// Steps from `low` to `high` at which a rank changed, and both ends. If these are more than `most`, `most` evenly spaced steps.
std::vector<double> rank_steps(const RunView& view, double low, double high, size_t most);

// Live entries at each step, per layer; if there are more than `most` layers, per group of layers ("enc0"), with the rest as "others". In
// model order. Layers without known shapes are left out.
struct ModuleSize {
  std::string name;
  std::vector<double> entries;
};
std::vector<ModuleSize> module_sizes(const RunView& view, const std::vector<LayerRanks>& layers, const std::vector<double>& steps,
                                     size_t most);

}  // namespace comera::studio
