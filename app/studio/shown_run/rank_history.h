// Ranks of a run over its steps: order of layers, and size by module.
#pragma once
#include <string>
#include <vector>

#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

// depth: as the model has them; size: most entries first; drop: the largest share lost first.
enum class RankOrder { depth, size, drop };
inline constexpr int kRankOrders = 3;
// Indices of the layers in this order; those that are equal stay as they are.
std::vector<size_t> ordered_layers(const std::vector<LayerRanks>& layers, RankOrder order);

// Steps from `low` to `high` at which some rank changed, with both ends; where these are more than `most`, so many that
// are evenly spread.
std::vector<double> rank_steps(const RunView& view, double low, double high, size_t most);

// Live entries of some layers at each of the steps. A layer, or where there are more than `most` of them what their names
// begin with ("enc0"); what is beyond that is one "others". In the order of the model. Layers of no known shape are left out.
struct ModuleSize {
  std::string name;
  std::vector<double> entries;
};
std::vector<ModuleSize> module_sizes(const RunView& view, const std::vector<LayerRanks>& layers, const std::vector<double>& steps,
                                     size_t most);

}  // namespace comera::studio
