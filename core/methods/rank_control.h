// Ranks of a running model, seen and changed from the host between two steps: live counts, caps and floor, and the cut
// that takes dead slices out of memory. Cost of a look: one download of the rank vectors (4,362 numbers in the
// six-encoder model), which waits for the device; after a step they come with its results (Engine). Thread: the trainer's.
//
// Why a cut is exact (METHODS.md 1.6). A bond entry with D <= threshold is masked to 0 in every forward, so its slices of the two cores
// beside it get and give zero gradient, the penalty skips it, and S counts live entries only. Taking it out leaves
// function, gradients, rho, S and the later steps of elementwise moments as they are; only the order of additions in
// the smaller products may differ (last bits). A bond without any live entry keeps one dead one, so that no tensor is
// empty: it stays masked, hence outside rho and its count, and S still sees a dead bond and drops the layer's term.
// The live entries of the layer's other bonds stay by the ordinary rule and so stay in rho.
// Two limits. An entry that died in training was falling and cannot come back; one killed by a cap or by a raised
// threshold might have been rising, and for it the cut is final: what rank_grow.h gives back are new entries. And in
// paper mode ||G||^2, which is only reported, counts dead slices until they are cut.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/methods/rank_resize.h"
#include "core/records/sizes.h"

namespace comera {

// Live entries of every bond.
LiveRanks live_ranks(const ParamSet& params, Device& device, double threshold);
// The same of ParamSet::ranks() that are on the host already.
LiveRanks live_ranks(const ParamSet& params, const std::vector<double>& values, double threshold);

// Entries of a layer's cores with these ranks, 0 when a bond is dead: the layer's term of S (METHODS.md 1.4, with the
// true factor of TTM cores).
int64_t live_entries(const RankLayer& layer, const std::vector<int64_t>& live);

// Holds bonds to their limits and returns whether something changed. `caps`: "LAYER.BOND", bonds counted from 1; above
// a cap the smallest entries are set to 0. Moments are left alone: should one lift its entry over the threshold again,
// the next call finds it, before any forward pass sees it. With `floor_rank` a bond that died gets its largest entry back,
// just above the threshold. Throws Error(not_found) for a cap on a bond that is not there.
bool hold_ranks(ParamSet& params, Device& device, double threshold, const std::map<std::string, int64_t>& caps, bool floor_rank);

// The live entries of each bond. Due when in some bond the entries that can go are at least `prune_dead_share` of those in
// memory; then every bond is cut. Empty: nothing is worth a cut.
BondEntries plan_cut(const ParamSet& params, Device& device, double threshold, double prune_dead_share);

}  // namespace comera
