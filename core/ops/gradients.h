// From the gradients of parts to the gradient of a step: batches of several parts, and clipping.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// After the loss of a part: dlogits (S, C), the gradient of the mean over the examples of the part, becomes the gradient of their
// sum; ce, examples and correct are added to results.part_*.
struct AddPart {
  static constexpr const char* name = "add_part";
  Tensor results, dlogits;
  static void tensors(auto& a, auto& see) { see.inout(a.results, a.dlogits); }
  void check() const;
};
// After the last part: results.ce, .examples and .correct of the whole batch, from results.part_*.
struct FinishParts {
  static constexpr const char* name = "finish_parts";
  Tensor results;
  static void tensors(auto& a, auto& see) { see.inout(a.results); }
  void check() const;
};
// The gradient of the sum over the examples becomes the gradient of the weighted mean: y *= results.ce_weight / max(1, results.examples).
struct WeightGradients {
  static constexpr const char* name = "weight_gradients";
  Tensor y, results;
  static void tensors(auto& a, auto& see) {
    see.inout(a.y);
    see.in(a.results);
  }
  void check() const;
};
// y *= min(1, limit / (sqrt(results.grad_norm2) + 1e-6)), as clip_grad_norm_ of PyTorch. A norm that is not a number leaves y as it is.
struct ClipGradients {
  static constexpr const char* name = "clip_gradients";
  Tensor y, results;
  double limit = 0;
  static void tensors(auto& a, auto& see) {
    see.inout(a.y);
    see.in(a.results);
  }
  void check() const;
};

}  // namespace op

#define COMERA_GRADIENT_OPS(OP) OP(AddPart) OP(FinishParts) OP(WeightGradients) OP(ClipGradients)

}  // namespace comera
