// The canonical form of tensor trains (METHODS.md 1.9): the same matrices, written so that each entry of a bond carries as much as its rank
// parameter says.
//
// A train can be written in many ways: with any invertible X, core k times X and X^-1 times core k+1 is the same matrix.
// Training ends in one of them, where the entries of a bond are alike and every one carries a part of everything, so
// whichever dies takes much along. In the canonical form a bond's entries are the singular vectors of the matrix that
// the train is when it is unfolded there, largest first: dropping the last ones is the smallest change that any cut of
// this bond can be (Eckart and Young), and what is left at full rank is often next to nothing.
#pragma once
#include "core/optim/optimizer.h"

namespace comera {

// Writes every train of `params` anew so that, with s the singular values of a bond's unfolding,
//   D_k = sqrt(s_k), scaled to the mean of the live D_k before;   U_k D_k = s_{k-1}^(-1/2) Q_k s_k^(1/2),
// Q_k the cores with orthonormal columns, each core scaled to the norm it had. What a layer computes stays, up to rounding.
// Entries that carry nothing die: dead ones, and those beyond the rank that the matrix has; all others are alive, at
// least just above `threshold`. First moments of what was rewritten become 0, second moments their mean over the
// parameter (they cannot be rotated). A layer with a dead bond computes nothing and is left alone.
void make_canonical(ParamSet& params, Optimizer& optimizer, Device& device, Ctx& ctx, double threshold);

}  // namespace comera
