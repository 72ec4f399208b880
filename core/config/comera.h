// Settings of trainable ranks (METHODS.md 1.4, 1.5). Learning rates are the training's, not the method's.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/fields.h"

namespace comera {

struct ComeraConfig {
  // What is minimised beside the loss. reference: the published code, whose penalty pushes every rank entry alike;
  // selective: the same, but only entries below the mean of their bond are pushed, each by as much as the network would
  // be smaller without it, so the others keep the scale of their layer; paper: the
  // published formulas.
  std::string mode = "reference";
  bool train_ranks = true;        // false: rank vectors are ignored and nothing is pruned
  double threshold = 1e-2;        // rank entries at or under it are dead
  double rank_weight = 0.01;      // of rho, both stages
  double late_loss_weight = 0.1;  // of the loss in the late stage, always
  double late_weight = 1;         // late stage: weight of the term that lambda selects
  double gamma = 0, beta = 0;     // paper mode: weights of the size surrogate and of ||G||^2
  double w1 = 1, w2 = 1;          // paper mode: weights of the two terms of the late maximum
  double loss_target = 0.8;       // F0
  // Late stage: rank vectors rest while the size is at its target, so it ends there. As published they go on moving, and
  // an entry that falls under the threshold by chance never comes back: a target of 0.2 ended at 0.13, less accurate.
  bool hold_at_target = true;

  // Late stage: the size may halve in no fewer steps; 0 = as published, as fast as the push gets. The entries of a bond fall
  // side by side, so a strong push kills many within a few steps and the network with them; with a pace the push
  // pauses whenever the size is ahead of it, and the loss says which entries rise again.
  int64_t late_halving = 0;

  // The late stage begins with every train in its canonical form (rank_canonical.h): the network computes the same, but the
  // weak entries of a bond are then what it needs least, and stay so while they are pushed.
  bool late_canonical = false;

  // S0 of the late stage, in one of three ways; 0 = not used. MiB wins over compression, compression over the ratio;
  // only_target() keeps one.
  double target = 0.8;            // share of the size at the start of the late stage; above 1: larger than it was
  double target_mib = 0;          // MiB of the tensorised layers
  double target_compression = 0;  // dense entries of the tensorised layers / S0

  int64_t late_after = 0;       // the late stage begins after this step; 0 = never
  int64_t late_on_plateau = 0;  // ... or after so many steps without a better smoothed loss; 0 = off

  // A cut moves every weight and moment through the host and plans anew, so it must pay: from 1/8 of a bond on. Each
  // bond then is cut at most ln(r) / ln(8/7) times in a run (25 times at r = 30) and never carries more dead slices
  // than 1/8. What is dead elsewhere goes along, as the new plan is paid for already.
  double prune_dead_share = 0.125;
  int64_t prune_every = 100;  // steps between looks; in 100 steps an entry moves by 0.1 at most (Adam, 1e-3)
  bool floor_rank = false;    // true: a bond keeps its last entry alive; false: it may die, and its layer with it

  void fields(FieldVisitor& v);

  // After `field` ("target", "target_mib" or "target_compression") was set to something other than 0: the last one set
  // is the one in force, so the other two become 0. Any other field: does nothing.
  void only_target(const std::string& field);
};

}  // namespace comera
