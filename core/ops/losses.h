// Losses.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// Mean over rows with label >= 0. Writes results.ce, .examples, .correct, and dlogits (S, C) of the mean (rows
// without a label: 0). row_loss (S), when not empty, gets each row's loss.
struct CrossEntropy {
  static constexpr const char* name = "cross_entropy";
  Tensor results, dlogits, row_loss, logits, labels;
  static void tensors(auto& a, auto& see) {
    see.out(a.results, a.dlogits, a.row_loss);
    see.in(a.logits, a.labels);
  }
  void check() const;
};
struct BinaryCrossEntropy {  // the same for one logit a row (S, 1) and labels 0/1
  static constexpr const char* name = "binary_cross_entropy";
  Tensor results, dlogits, row_loss, logits, labels;
  static void tensors(auto& a, auto& see) {
    see.out(a.results, a.dlogits, a.row_loss);
    see.in(a.logits, a.labels);
  }
  void check() const;
};
struct ScaleByCeWeight {  // y *= results.ce_weight
  static constexpr const char* name = "scale_by_ce_weight";
  Tensor y, results;
  static void tensors(auto& a, auto& see) {
    see.inout(a.y);
    see.in(a.results);
  }
  void check() const;
};

}  // namespace op

#define COMERA_LOSS_OPS(OP) OP(CrossEntropy) OP(BinaryCrossEntropy) OP(ScaleByCeWeight)

}  // namespace comera
