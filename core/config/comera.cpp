#include "core/config/comera.h"

namespace comera {

namespace {

void penalty_fields(ComeraConfig& c, FieldVisitor& v) {
  const Live live = Live::yes;
  const When paper = {"method.comera.mode", {"paper"}};
  v.field(
      "mode", c.mode,
      {.title = "Mode",
       .help =
           "reference: the published code; selective: the penalty acts only on the weaker entries of a bond; paper: the published formulas",
       .choices = {
           {"reference", "Reference", "As in the published code: the rank penalty treats all entries alike."},
           {"selective", "Selective",
            "The rank penalty acts only on entries below the mean of their bond, each weighted by the size that its removal saves."},
           {"paper", "Paper", "As in the published formulas, with the weights gamma, beta, w1 and w2."}}});
  v.field("train_ranks", c.train_ranks, {.title = "Train ranks", .help = "train the ranks; false: every bond keeps its full rank"});
  v.field("threshold", c.threshold,
          {.title = "Rank threshold",
           .help = "entries of a rank vector at or below it are dead",
           .range = {1e-6, 1},
           .usual = {1e-4, 0.1},
           .scale = Scale::log,
           .live = live});
  v.field("rank_weight", c.rank_weight,
          {.title = "Rank penalty weight",
           .help = "weight of the rank penalty, both stages",
           .more = "It is constant. 0: only the late stage reduces ranks.",
           .range = {0, 100},
           .usual = {0, 0.1},
           .scale = Scale::log,
           .live = live});
  v.field("late_loss_weight", c.late_loss_weight,
          {.title = "Loss weight",
           .help = "late stage: constant weight of the loss",
           .range = {0, 100},
           .usual = {0, 10},
           .scale = Scale::log,
           .live = live});
  v.field("late_weight", c.late_weight,
          {.title = "Late-stage weight",
           .help = "late stage: weight of the term that is further from its target, size or loss",
           .more = "0: neither target has an effect.",
           .range = {0, 100},
           .usual = {0, 10},
           .scale = Scale::log,
           .live = live});
}

void paper_fields(ComeraConfig& c, FieldVisitor& v) {
  const Live live = Live::yes;
  const When paper = {"method.comera.mode", {"paper"}};
  v.field("gamma", c.gamma,
          {.title = "Gamma",
           .help = "paper mode: weight of the size surrogate",
           .range = {0, 100},
           .usual = {0, 10},
           .scale = Scale::log,
           .live = live,
           .when = paper});
  v.field("beta", c.beta,
          {.title = "Beta",
           .help = "paper mode: weight of the squared norm of the cores",
           .range = {0, 100},
           .usual = {0, 10},
           .scale = Scale::log,
           .live = live,
           .when = paper});
  v.field("w1", c.w1,
          {.title = "Loss weight w1",
           .help = "paper mode, late stage: weight of the loss in the maximum",
           .range = {0, 1e6},
           .usual = {0, 100},
           .scale = Scale::log,
           .live = live,
           .when = paper});
  v.field("w2", c.w2,
          {.title = "Size weight w2",
           .help = "paper mode, late stage: weight of the size in the maximum",
           .range = {0, 1e6},
           .usual = {0, 100},
           .scale = Scale::log,
           .live = live,
           .when = paper});
}

void target_fields(ComeraConfig& c, FieldVisitor& v) {
  const Live live = Live::yes;
  v.field("loss_target", c.loss_target,
          {.title = "Loss target",
           .symbol = "F0",
           .help = "late stage: loss target F0",
           .more = "The rank penalty acts only while the training loss is at or below this value.",
           .range = {0, 100},
           .usual = {0.01, 5},
           .scale = Scale::log,
           .live = live});
  // The lower bound of the three targets is 0, not 0.05: 0 says "another one is in force".
  v.field("target", c.target,
          {.title = "Size target",
           .symbol = "S0",
           .unit = "share",
           .help = "late stage: size target as a fraction of the size at its start, above 1: larger; 0 = not used",
           .range = {0, 10},
           .live = live});
  v.field("target_mib", c.target_mib,
          {.title = "Size target",
           .unit = "MiB",
           .help = "late stage: size target in MiB of the tensorised layers; 0 = not used",
           .range = {0, 1e9},
           .live = live});
  v.field("target_compression", c.target_compression,
          {.title = "Size target",
           .unit = "x smaller",
           .help = "late stage: size target as compression (dense size / size); 0 = not used",
           .range = {0, 1e9},
           .live = live});
  v.field("hold_at_target", c.hold_at_target,
          {.title = "Hold at the target",
           .help = "late stage: ranks stop falling at the size target; false: as published, they continue to fall",
           .more = "Entries that fall below the threshold by chance do not return.",
           .live = live});
}

void late_fields(ComeraConfig& c, FieldVisitor& v) {
  const Live live = Live::yes;
  v.field("late_halving", c.late_halving,
          {.title = "Steps per halving",
           .unit = "steps",
           .help = "late stage: least steps in which the size may halve; 0 = as published, no limit",
           .more = "While the size falls faster, only the loss moves the ranks.",
           .range = {0, 1e9},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = live});
  v.field("late_canonical", c.late_canonical,
          {.title = "Canonical form first",
           .help = "bring every tensor train to canonical form when the late stage begins; its outputs do not change",
           .more = "Rank vectors then order the entries of a bond by importance. Off: as published, no change.",
           .live = live});
  v.field("late_after", c.late_after,
          {.title = "Late stage after",
           .unit = "steps",
           .help = "steps of the early stage; 0 = no limit",
           .range = {0, 1e12},
           .usual = {0, 100000},
           .scale = Scale::log,
           .live = live});
  v.field("late_on_plateau", c.late_on_plateau,
          {.title = "Late on plateau",
           .unit = "steps",
           .help = "enter the late stage after this number of steps without a better loss; 0 = off",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = live});
}

void prune_fields(ComeraConfig& c, FieldVisitor& v) {
  const Live live = Live::yes;
  v.field("prune_dead_share", c.prune_dead_share,
          {.title = "Prune from (dead share)",
           .help = "prune a bond when this share of its entries is dead",
           .more = "Pruning moves all weights in memory, so a small share does not pay.",
           .range = {0, 1},
           .usual = {0, 1},
           .live = live});
  v.field("prune_every", c.prune_every,
          {.title = "Prune every",
           .unit = "steps",
           .help = "steps between checks for dead entries; 0 = never prune",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = live});
  v.field("floor_rank", c.floor_rank,
          {.title = "Keep rank >= 1",
           .help = "keep the live rank of every bond at 1 or more",
           .more = "Off: a bond may die; its layer then outputs 0.",
           .live = live});
}

}  // namespace

void ComeraConfig::fields(FieldVisitor& v) {
  penalty_fields(*this, v);
  paper_fields(*this, v);
  target_fields(*this, v);
  late_fields(*this, v);
  prune_fields(*this, v);
}

void ComeraConfig::only_target(const std::string& field) {
  if (field == "target" && target > 0) target_mib = target_compression = 0;
  if (field == "target_mib" && target_mib > 0) target = target_compression = 0;
  if (field == "target_compression" && target_compression > 0) target = target_mib = 0;
}

}  // namespace comera
