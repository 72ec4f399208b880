// How large a model is when its bonds have these ranks.
#pragma once
#include "core/methods/rank_control.h"

namespace comera {

struct ModelSize {
  double entries = 0;            // live TT entries S; of a dense model: all trained values
  double bytes = 0;              // of those
  double compression = 1;        // entries of the dense matrices they stand for / entries
  double model_entries = 0;      // everything trained, live ranks only
  double model_compression = 1;  // dense model / that
  int64_t held_entries = 0;      // TT entries in memory: falls when ranks are cut

  bool operator==(const ModelSize&) const = default;
};

// Entries in memory of each bond of `params` as they are now: [layer][bond].
LiveRanks held_ranks(const ParamSet& params);

// `live` and `held`: [layer][bond], ranks that are alive and ranks that are in memory. `params` only gives the modes
// and what is not a tensor train, so a description (ParamSet::describe) will do, whatever its ranks.
ModelSize model_size(const ParamSet& params, const LiveRanks& live, const LiveRanks& held, DType dtype);

}  // namespace comera
