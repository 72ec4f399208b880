// How large a model is when its bonds have these ranks.
#pragma once
#include "core/methods/rank_control.h"

namespace comera {

// Entries in memory of each bond of `params` as they are now: [layer][bond].
LiveRanks held_ranks(const ParamSet& params);
// Gives the bonds so many entries, before memory is planned (Engine).
void set_ranks(ParamSet& params, const LiveRanks& ranks);

// `live` and `held`: [layer][bond], ranks that are alive and ranks that are in memory. `params` only gives the modes
// and what is not a tensor train, so a description (ParamSet::describe) will do, whatever its ranks.
ModelSize model_size(const ParamSet& params, const LiveRanks& live, const LiveRanks& held, DType dtype);

}  // namespace comera
