// The two blocks that a step reads and writes on the device. Every value that may change from step to step is in StepScalars, so a captured
// graph stays valid under live edits; results come back in StepResults. Plain doubles, copied as bytes on every device.
#pragma once
#include <cstdint>

#include "core/base/hd.h"

namespace comera {

// TT cores, rank vectors and everything else have learning rates of their own (METHODS.md 1.4). Biases and the vectors of norms have the
// last one, and may have no weight decay.
enum class ParamGroup : int { core = 0, rank = 1, rest = 2, vector = 3 };
inline constexpr int kParamGroups = 4, kRates = 3;

struct StepScalars {
  uint64_t seed = 0;            // of the run; with `step` the key of all random numbers
  uint64_t step = 0;            // 1-based number of the step that is being computed
  uint64_t optimizer_step = 0;  // t of the bias corrections, 1-based
  uint64_t part = 0;            // which part of the batch is being computed: masks go on where those of the part before end
  double learning_rate[kRates] = {};
  double weight_decay = 0;
  double vector_decay = 1;  // factor on it for ParamGroup::vector
  double threshold = 1e-2;  // rank parameters at or below it are dead
  double pruning = 1;       // 0: rank vectors are ignored
  // The rank objective (METHODS.md 1.4 and 1.5).
  double late = 0;                  // 0 early stage, 1 late stage
  double rank_weight = 0.01;        // of rho, both stages
  double late_loss_weight = 0.1;    // of CE, late stage, always
  double late_weight = 1.0;         // weight of the term lambda selects
  double loss_target = 0.8;         // F0
  double pause_rank_push = 0;       // 1: late stage with the size at its target: lambda is 0
  double size_target = 0;           // S0, entries
  double paper = 0;                 // 1: paper mode (1.5)
  double selective = 0;             // 1: selective mode: the weak entries of a bond are pushed
  double gamma = 0;                 // paper mode: weight of the size surrogate
  double beta = 0;                  // paper mode: weight of ||G||^2
  double late_w1 = 1, late_w2 = 1;  // paper mode: weights of the two terms of the max
};

HD double rate_of(const StepScalars& step, ParamGroup group) {
  return step.learning_rate[static_cast<int>(group == ParamGroup::vector ? ParamGroup::rest : group)];
}
HD double decay_of(const StepScalars& step, ParamGroup group) {
  return group == ParamGroup::vector ? step.weight_decay * step.vector_decay : step.weight_decay;
}

struct StepResults {
  double loss = 0;        // the objective
  double ce = 0;          // mean cross-entropy (or BCE) of the batch
  double examples = 0;    // rows with a label
  double correct = 0;     // rows whose largest logit is the label's
  double rho = 0;         // rank penalty: mean of the live rank parameters
  double entries = 0;     // S, true count of TT entries with the live ranks
  double surrogate = 0;   // paper mode: S^; selective mode: the weighted sum of its weak entries
  double core_norm2 = 0;  // paper mode: ||G||^2
  double lambda = 0;      // late stage: 1 pushes ranks, 0 pushes the loss
  double ce_weight = 1;   // factor on the gradient of ce
  double rho_weight = 0;  // factor on the gradient of rho (reference) or the surrogate (other modes)
  // Batches of several parts: sums so far, from which the three means above come.
  double part_loss = 0, part_examples = 0, part_correct = 0;
  double grad_norm2 = 0;  // where gradients are clipped: ||all gradients||^2 before it
};

}  // namespace comera
