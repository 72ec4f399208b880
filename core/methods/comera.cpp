#include "core/methods/comera.h"

namespace comera {

void ComeraConfig::fields(FieldVisitor& v) {
  const Live live = Live::yes;
  v.field(
      "mode", mode,
      {.help =
           "reference: the published code; selective: the penalty acts only on the weaker entries of a bond; paper: the published formulas",
       .choices = {"reference", "selective", "paper"}});
  v.field("train_ranks", train_ranks, {.help = "train the ranks; false: every bond keeps its full rank"});
  v.field("threshold", threshold, {.help = "entries of a rank vector at or below it are dead", .range = {1e-6, 1}, .live = live});
  v.field("rank_weight", rank_weight, {.help = "weight of the rank penalty, both stages", .range = {0, 100}, .live = live});
  v.field("late_loss_weight", late_loss_weight, {.help = "late stage: constant weight of the loss", .range = {0, 100}, .live = live});
  v.field("late_weight", late_weight,
          {.help = "late stage: weight of the term that is further from its target, size or loss", .range = {0, 100}, .live = live});
  v.field("gamma", gamma, {.help = "paper mode: weight of the size surrogate", .range = {0, 100}, .live = live});
  v.field("beta", beta, {.help = "paper mode: weight of the squared norm of the cores", .range = {0, 100}, .live = live});
  v.field("w1", w1, {.help = "paper mode, late stage: weight of the loss in the maximum", .range = {0, 1e6}, .live = live});
  v.field("w2", w2, {.help = "paper mode, late stage: weight of the size in the maximum", .range = {0, 1e6}, .live = live});
  v.field("loss_target", loss_target, {.help = "late stage: loss target F0", .range = {0, 100}, .live = live});
  // The lower bound of the three targets is 0, not 0.05: 0 says "another one is in force".
  v.field("target", target,
          {.help = "late stage: size target as a fraction of the size at its start, above 1: larger; 0 = not used",
           .range = {0, 10},
           .live = live});
  v.field("target_mib", target_mib,
          {.help = "late stage: size target in MiB of the tensorised layers; 0 = not used", .range = {0, 1e9}, .live = live});
  v.field("target_compression", target_compression,
          {.help = "late stage: size target as compression (dense size / size); 0 = not used", .range = {0, 1e9}, .live = live});
  v.field("hold_at_target", hold_at_target,
          {.help = "late stage: ranks stop falling at the size target; false: as published, they continue to fall", .live = live});
  v.field("late_halving", late_halving,
          {.help = "late stage: least steps in which the size may halve; 0 = as published, no limit", .range = {0, 1e9}, .live = live});
  v.field("late_canonical", late_canonical,
          {.help = "bring every tensor train to canonical form when the late stage begins; its outputs do not change",
           .live = live});
  v.field("late_after", late_after,
          {.help = "steps of the early stage; 0 = no limit", .range = {0, 1e12}, .live = live});
  v.field("late_on_plateau", late_on_plateau,
          {.help = "enter the late stage after this number of steps without a better loss; 0 = off", .range = {0, 1e12}, .live = live});
  v.field("prune_dead_share", prune_dead_share,
          {.help = "prune a bond when this share of its entries is dead", .range = {0, 1}, .live = live});
  v.field("prune_every", prune_every, {.help = "steps between checks for dead entries; 0 = never prune", .range = {0, 1e12}, .live = live});
  v.field("floor_rank", floor_rank, {.help = "keep the live rank of every bond at 1 or more", .live = live});
}

void ComeraConfig::only_target(const std::string& field) {
  if (field == "target" && target > 0) target_mib = target_compression = 0;
  if (field == "target_mib" && target_mib > 0) target = target_compression = 0;
  if (field == "target_compression" && target_compression > 0) target = target_mib = 0;
}

}  // namespace comera
