// The live rank of every bond as a picture: a row a layer, a cell a bond; and over the steps, a band a bond.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "app/figure/drawing.h"
#include "core/session/snapshot.h"

namespace comera {

// `note`: of which run, at which step; stands under the title.
Drawing rank_map(std::span<const LayerRanks> layers, const std::string& note);

// What the rank of a bond was: `ranks[i]` from `steps[i]` on, until the next one.
struct BondPast {
  std::string layer;
  int64_t bond = 0;  // from 1
  int64_t initial = 0;
  std::vector<double> steps = {}, ranks = {};
};
// From step `low` to `high`; nothing is known after `newest`. Bonds of a layer stand one after the other in `bonds`.
Drawing rank_heatmap(std::span<const BondPast> bonds, double low, double high, double newest, const std::string& note);

}  // namespace comera
