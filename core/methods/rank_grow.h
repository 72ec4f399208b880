// Bonds that get entries back (METHODS.md 1.10): the other direction of a cut.
//
// Why growth is exact. For each new entry b of bond k: U_k[.., b] is random, U_{k+1}[b, ..] is 0 but for the columns that
// are new themselves, D_k[b] is alive, moments are 0. A path through the train that takes a new entry must go on
// through new entries, until it comes to a core whose next bond did not grow (the last core at the latest), and there
// it meets a 0. So whichever bonds grow together, each product over paths gets terms that are 0: function, gradients of
// all that was there before, and the values and moments of it are what they were. Dead entries of a bond that grows
// are cut on the way, which is as exact (rank_control.h). A contraction that adds in the order of the entries gives the
// same bits; a BLAS may add in another order when a bond has another size, so a layer's output differs by rounding:
// at most about 2 n eps sum |terms| over the n terms of its products.
//
// Why growth learns. The zeros of U_{k+1} have the gradient sum over paths, which is not 0 where U_k[.., b] is not: they
// move in the first step, and U_k[.., b] and D_k[b] after them. With both sides 0 nothing would ever move, and with both
// random the function would jump. The random side is as large as what is alive in U_k, so that a new direction learns at
// the pace of the others; D_k[b] is the median of the bond's live entries. Adam's moments begin at 0 while its bias
// correction is long over, so the first hundred steps of the new values are up to 6.5 times as long as others.
#pragma once
#include <deque>

#include "core/methods/rank_control.h"

namespace comera {

// The largest rank a bond can make use of: the smaller of what the modes on its two sides multiply to.
int64_t rank_limit(const RankLayer& layer, size_t bond);

// live_entries() of all layers.
double total_entries(const std::deque<RankLayer>& layers, const LiveRanks& live);

// Live ranks with which the model has at most `entries` live entries (live_entries) and comes near to it: every bond gets
// back the same share of what it lost, `limit` less `live`, rounded down; then one entry at a time, bond by bond, while
// one fits. Bonds at or over their limit stay; with too many entries from the start all do. All lists: [layer][bond].
LiveRanks grown_to_size(const std::deque<RankLayer>& layers, LiveRanks live, const LiveRanks& limit, double entries);

// The live entries of each bond and as many new ones as it lacks to `wanted`; a bond that lacks none keeps what it has,
// dead entries too. Empty: no bond lacks any.
BondEntries plan_growth(const ParamSet& params, Device& device, double threshold, const LiveRanks& wanted);

// resize_bonds(), then the values of new entries: drawn from (seed, step, name of the core), and for D the median of the
// live entries of the bond, 1 without any, at least twice the threshold.
void apply_growth(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const BondEntries& bonds,
                  double threshold, uint64_t seed, uint64_t step);

}  // namespace comera
