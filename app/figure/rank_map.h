// The live rank of every bond as a picture: a row a layer, a cell a bond.
#pragma once
#include <span>

#include "app/figure/drawing.h"
#include "core/session/snapshot.h"

namespace comera {

// `note`: of which run, at which step; stands under the title.
Drawing rank_map(std::span<const LayerRanks> layers, const std::string& note);

}  // namespace comera
