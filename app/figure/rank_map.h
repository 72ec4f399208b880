// Live ranks as a picture: the map has a row per layer and a cell per bond; the chart over steps has a band per bond.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "app/figure/drawing.h"
#include "core/session/snapshot.h"

namespace comera {

// `note`: run and step, under the title.
Drawing rank_map(std::span<const LayerRanks> layers, const std::string& note);

// History of a bond: rank `ranks[i]` from `steps[i]` until the next entry.
struct BondPast {
  std::string layer;
  int64_t bond = 0;  // from 1
  int64_t initial = 0;
  std::vector<double> steps = {}, ranks = {};
};
// From step `low` to `high`, with data up to `newest`. Bonds of a layer are adjacent in `bonds`.
Drawing rank_heatmap(std::span<const BondPast> bonds, double low, double high, double newest, const std::string& note);

}  // namespace comera
